attn.kernel @small heads<4 over 2, dim 64> tokens<3>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 16>
