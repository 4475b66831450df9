attn.kernel @broken heads<24 over 5, dim 256>
