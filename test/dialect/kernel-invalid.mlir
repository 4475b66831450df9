// Constraints between the clauses of `attn.kernel`, one case each.
//
// RUN: ninfer-opt %s -split-input-file -verify-diagnostics

// C35: a tile of tokens fits one word of ancestors.
// expected-error@+1 {{'attn.kernel' op expected 'tokens' from 1 to 64, got 65}}
attn.kernel @k heads<8 over 4, dim 128>
    tokens<65>
    sees<prefix all, suffix causal>
    keys<bf16>
    values<bf16>
    paging<page_major page 64>

// -----

// C36: a row is whole groups.
// expected-error@+1 {{'attn.kernel' op expected 'of' in 'keys' to divide a row of 128, got 48}}
attn.kernel @k heads<8 over 4, dim 128>
    tokens<4>
    sees<prefix all, suffix causal>
    keys<int8 scale group of 48>
    values<bf16>
    paging<page_major page 64>

// -----

// C37: a Hadamard matrix has a power of two.
// expected-error@+1 {{'attn.kernel' op expected rows of a power of two for 'rotated' in 'values', got 96}}
attn.kernel @k heads<8 over 4, dim 96>
    tokens<4>
    sees<prefix all, suffix causal>
    keys<bf16>
    values<e4m3 scale row rotated hadamard>
    paging<page_major page 64>

// -----

// C38: a slot holds the rows of all heads.
// expected-error@+1 {{'attn.kernel' op expected 'slot_stride' of at least 1024 bytes, got 1008}}
attn.kernel @k heads<8 over 4, dim 128>
    tokens<4>
    sees<prefix all, suffix causal>
    keys<bf16>
    values<bf16>
    paging<nhd page 64 slot_stride 1008>

// -----

// C39: a ring forgets.
// expected-error@+1 {{'attn.kernel' op expected 'prefix' left or symmetric for a 'ring', got all}}
attn.kernel @k heads<8 over 4, dim 128>
    tokens<4>
    sees<prefix all, suffix causal>
    keys<bf16>
    values<bf16>
    paging<page_major page 64 ring 128>

// -----

// C40: a ring remembers a window.
// expected-error@+1 {{'attn.kernel' op expected 'ring' to hold 'within' 128 and 4 block rows, got 128}}
attn.kernel @k heads<8 over 4, dim 128>
    tokens<4>
    sees<prefix left within 128, suffix causal>
    keys<bf16>
    values<bf16>
    paging<page_major page 64 ring 128>

// -----

// C41: a scale keeps the order of scores.
// expected-error@+1 {{'attn.kernel' op expected 'scale' to be finite and positive, got -0.5}}
attn.kernel @k heads<8 over 4, dim 128>
    tokens<4>
    sees<prefix all, suffix causal>
    keys<bf16>
    values<bf16>
    paging<page_major page 64>
    scale<-0.5>

// -----

// C42: a cap bounds.
// expected-error@+1 {{'attn.kernel' op expected 'softcap' to be finite and positive, got 0}}
attn.kernel @k heads<8 over 4, dim 128>
    tokens<4>
    sees<prefix all, suffix causal>
    keys<bf16>
    values<bf16>
    paging<page_major page 64>
    softcap<0.0>

// -----

// C43: latent values are read from the keys.
// expected-error@+1 {{'attn.kernel' op expected 'values' stored as 'keys' when 'latent', got #attn.storage<fp16> and #attn.storage<bf16>}}
attn.kernel @k heads<8 over 4, dim 128>
    tokens<4>
    sees<prefix all, suffix causal>
    keys<bf16>
    values<fp16>
    paging<page_major page 64>
    latent

// -----

// C44: latent values are a part of the keys.
// expected-error@+1 {{'attn.kernel' op expected 'value_dim' of at most 'dim' 128 when 'latent', got 256}}
attn.kernel @k heads<8 over 4, dim 128 value_dim 256>
    tokens<4>
    sees<prefix all, suffix causal>
    keys<bf16>
    values<bf16>
    paging<page_major page 64>
    latent

// -----

// C45: a piece is whole tiles.
// expected-error@+1 {{'attn.kernel' op expected 'split' keys in multiples of 'key_tile' 64, got 96}}
attn.kernel @k heads<8 over 4, dim 128>
    tokens<4>
    sees<prefix all, suffix causal>
    keys<bf16>
    values<bf16>
    paging<page_major page 64>
    split<keys of 96> schedule<auto key_tile 64>

// -----

// C46: a dense block has no scales.
// expected-error@+1 {{'attn.kernel' op expected 'keys' and 'values' of bf16 or fp16 for 'block' dense, got e4m3}}
attn.kernel @k heads<8 over 4, dim 128>
    tokens<4>
    sees<prefix all, suffix causal>
    keys<bf16>
    values<e4m3 scale row>
    paging<page_major page 64>
    block<dense>

// -----

// C69: a name is a symbol of PTX.
// expected-error@+1 {{'attn.kernel' op expected a name of letters, digits and '_', got 'two words'}}
attn.kernel @"two words" heads<8 over 4, dim 128>
    tokens<4>
    sees<prefix all, suffix causal>
    keys<bf16>
    values<bf16>
    paging<page_major page 64>
