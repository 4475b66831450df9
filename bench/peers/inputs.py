"""The tensors of one cell, as ninfer-bench draws and lays them out.

Elements have random signs and mantissas and magnitudes from 1/16 to 1, as in
bench/Workload.cpp: what is read affects the power that a GPU draws. Page tables
are the same kinds. Every peer gets the same keys, in the layout it asks for.
"""

import torch

PAGE = 64


def random_elements(*shape):
    generator = torch.Generator("cuda").manual_seed(1)
    drawn = torch.randint(
        0, 1 << 31, shape, device="cuda", dtype=torch.int32, generator=generator
    )
    bits = drawn & 0x807F | (123 + (drawn >> 16 & 3)) << 7
    return bits.to(torch.int16).view(torch.bfloat16)


def page_table(kind, batch, pages):
    """The pages of each request, and how many the pool has."""
    count = batch * pages
    ids = torch.arange(count, device="cuda", dtype=torch.int32)
    if kind == "fragmented":
        ids, count = 2 * ids + 1, 2 * count + 1
    elif kind == "shuffled":
        generator = torch.Generator("cuda").manual_seed(1)
        ids = torch.randperm(
            count, device="cuda", dtype=torch.int32, generator=generator
        )
    return ids.view(batch, pages), count


class Inputs:
    """All on the device, bf16. `context` counts the keys before the block,
    `keys` includes it.

    query   [batch, tokens, query heads, dim]
    keys_nhd, values_nhd         [pool pages, page, kv heads, dim]
    table   [batch, pages] int32
    lengths [batch] int32
    """

    def __init__(self, workload, batch, context, tokens, table):
        self.workload = workload
        self.batch, self.context, self.tokens = batch, context, tokens
        self.table_kind = table
        self.keys = context + tokens
        pages = -(-self.keys // PAGE)
        self.table, pool = page_table(table, batch, pages)
        heads, dim = workload.kv_heads, workload.head_dim
        self.keys_nhd = random_elements(pool, PAGE, heads, dim)
        self.values_nhd = random_elements(pool, PAGE, heads, dim).flip(0)
        self.query = random_elements(batch, tokens, workload.query_heads, dim)
        self.lengths = torch.full(
            (batch,), self.keys, device="cuda", dtype=torch.int32
        )
        self.scale = dim**-0.5

    def offsets(self, step):
        """[0, step, 2 step, ...], one more than there are requests."""
        return torch.arange(
            0, (self.batch + 1) * step, step, device="cuda", dtype=torch.int32
        )

    def contiguous(self):
        """(keys, values) as [batch, kv heads, keys, dim]."""

        def gather(pool):
            pages = pool[self.table.long()].flatten(1, 2)[:, : self.keys]
            return pages.transpose(1, 2).contiguous()

        return gather(self.keys_nhd), gather(self.values_nhd)

    def reference(self):
        """The fp32 answer, [batch, tokens, query heads, dim], in steps of one
        kv head."""
        keys, values = self.contiguous()
        group = self.workload.query_heads // self.workload.kv_heads
        places = torch.arange(self.keys, device="cuda")
        last = self.context + torch.arange(self.tokens, device="cuda")
        hidden = places[None, :] > last[:, None]
        outputs = []
        for head in range(self.workload.kv_heads):
            rows = self.query[:, :, head * group : (head + 1) * group].float()
            scores = torch.einsum(
                "bwgd,bsd->bgws", rows, keys[:, head].float() * self.scale
            )
            if self.workload.causal:
                scores.masked_fill_(hidden, float("-inf"))
            outputs.append(
                torch.einsum(
                    "bgws,bsd->bwgd",
                    scores.softmax(-1),
                    values[:, head].float(),
                )
            )
        return torch.cat(outputs, 2)
