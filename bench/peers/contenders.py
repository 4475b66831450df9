"""The peers: how each is imported and called.

A contender turns Inputs into a function without arguments that queues the whole
operation on the current stream and returns the output, shaped as the query.
What a serving engine does once a step, plans and schedules, is done outside of
that function. Importing happens at call time: a library that is not there makes
its contender missing and no other.
"""

import inspect

import torch
from inputs import PAGE


class Unsupported(Exception):
    """The peer does not compute this cell; says why."""


class FlashAttention3:
    name, library = f"fa3-p{PAGE}", "FlashAttention-3"
    layout = "nhd"

    def load(self):
        import flash_attn_interface

        self.api = flash_attn_interface

    def prepare(self, inputs):
        workload = inputs.workload
        metadata = self.api.get_scheduler_metadata(
            inputs.batch,
            inputs.tokens,
            inputs.keys,
            workload.query_heads,
            workload.kv_heads,
            workload.head_dim,
            inputs.lengths,
            qkv_dtype=torch.bfloat16,
            page_size=PAGE,
            causal=workload.causal,
        )
        return lambda: self.api.flash_attn_with_kvcache(
            inputs.query,
            inputs.keys_nhd,
            inputs.values_nhd,
            cache_seqlens=inputs.lengths,
            page_table=inputs.table,
            softmax_scale=inputs.scale,
            causal=workload.causal,
            scheduler_metadata=metadata,
        )


class FlashInfer:
    name, library = f"fi-fa2-p{PAGE}", "FlashInfer"
    layout = "nhd"

    def load(self):
        import flashinfer

        self.api = flashinfer

    def prepare(self, inputs):
        workload = inputs.workload
        pages = inputs.table.shape[1]
        workspace = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
        wrapper = self.api.BatchPrefillWithPagedKVCacheWrapper(
            workspace, "NHD", backend="fa2"
        )
        wrapper.plan(
            inputs.offsets(inputs.tokens),
            inputs.offsets(pages),
            inputs.table.flatten(),
            inputs.lengths - (pages - 1) * PAGE,
            workload.query_heads,
            workload.kv_heads,
            workload.head_dim,
            PAGE,
            causal=workload.causal,
            sm_scale=inputs.scale,
            q_data_type=torch.bfloat16,
            kv_data_type=torch.bfloat16,
        )
        cache = (inputs.keys_nhd, inputs.values_nhd)
        query = inputs.query.flatten(0, 1)
        return lambda: wrapper.run(query, cache).view_as(inputs.query)


class VllmTriton:
    """As vLLM ships it: splits of the keys for one token only."""

    name, library = f"vllm-p{PAGE}", "vLLM Triton"
    layout = "nhd"
    segments = 16

    def load(self):
        try:
            from vllm.v1.attention.ops import triton_unified_attention
        except ImportError:
            from vllm.attention.ops import triton_unified_attention

        self.api = triton_unified_attention

    def prepare(self, inputs):
        workload = inputs.workload
        if not workload.causal:
            raise Unsupported("it computes causal attention only")
        output = torch.empty_like(inputs.query)
        query, flat = inputs.query.flatten(0, 1), output.flatten(0, 1)
        partials = (*query.shape[:2], self.segments)
        on_device = {"dtype": torch.float32, "device": "cuda"}
        options = {
            "seq_threshold_3D": 128 // workload.kv_heads,
            "num_par_softmax_segments": self.segments,
            "softmax_segm_output": torch.empty(
                *partials, workload.head_dim, **on_device
            ),
            "softmax_segm_max": torch.empty(partials, **on_device),
            "softmax_segm_expsum": torch.empty(partials, **on_device),
        }
        known = inspect.signature(self.api.unified_attention).parameters
        offsets = inputs.offsets(inputs.tokens)

        def work():
            self.api.unified_attention(
                q=query,
                k=inputs.keys_nhd,
                v=inputs.values_nhd,
                out=flat,
                cu_seqlens_q=offsets,
                max_seqlen_q=inputs.tokens,
                seqused_k=inputs.lengths,
                max_seqlen_k=inputs.keys,
                softmax_scale=inputs.scale,
                causal=True,
                window_size=(-1, -1),
                block_table=inputs.table,
                softcap=0,
                q_descale=None,
                k_descale=None,
                v_descale=None,
                **{key: options[key] for key in options if key in known},
            )
            return output

        return work


class Sdpa:
    """PyTorch's scaled_dot_product_attention, on contiguous keys."""

    library = "PyTorch SDPA"
    layout = "contiguous"

    def __init__(self, backend):
        self.backend = backend
        self.name = f"sdpa-{backend}"

    def load(self):
        import torch.nn.attention.bias

        self.api = torch.nn.attention

    def prepare(self, inputs):
        keys, values = inputs.contiguous()
        query = inputs.query.transpose(1, 2).contiguous()
        mask = None
        if inputs.workload.causal and inputs.tokens > 1:
            if self.backend == "cudnn":
                raise Unsupported("no mask that ends at the last key")
            mask = self.api.bias.causal_lower_right(inputs.tokens, inputs.keys)
        backends = {
            "flash": self.api.SDPBackend.FLASH_ATTENTION,
            "cudnn": self.api.SDPBackend.CUDNN_ATTENTION,
        }

        def work():
            with self.api.sdpa_kernel(backends[self.backend]):
                output = torch.nn.functional.scaled_dot_product_attention(
                    query,
                    keys,
                    values,
                    attn_mask=mask,
                    scale=inputs.scale,
                    enable_gqa=True,
                )
            return output.transpose(1, 2)

        return work


class FlexAttention:
    name, library = "flex", "FlexAttention"
    layout = "contiguous"

    def load(self):
        import torch._dynamo
        from torch.nn.attention import flex_attention

        self.api = flex_attention
        self.call = torch.compile(flex_attention.flex_attention, dynamic=False)

    def prepare(self, inputs):
        torch._dynamo.reset()
        keys, values = inputs.contiguous()
        query = inputs.query.transpose(1, 2).contiguous()
        context, mask = inputs.context, None
        if inputs.workload.causal:

            def sees(batch, head, row, key):
                return key <= row + context

            mask = self.api.create_block_mask(
                sees, None, None, inputs.tokens, inputs.keys, device="cuda"
            )
        return lambda: self.call(
            query,
            keys,
            values,
            block_mask=mask,
            scale=inputs.scale,
            enable_gqa=True,
        ).transpose(1, 2)


def all_contenders():
    return [
        FlashAttention3(),
        FlashInfer(),
        VllmTriton(),
        Sdpa("flash"),
        Sdpa("cudnn"),
        FlexAttention(),
    ]
