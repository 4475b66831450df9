// What the generator does not cover yet, one axis each.
//
// RUN: ninfer-opt %s -split-input-file -attn-select-schedule=chip=sm_80 -verify-diagnostics
// RUN: ninfer-opt %s -split-input-file -attn-select-schedule=chip=host -verify-diagnostics

// expected-error @below {{'attn.kernel' op the generator does not cover 'keys' element e4m3 yet; bf16 and fp16 work}}
attn.kernel @keys_element heads<4 over 2, dim 64> tokens<2>
    sees<prefix all, suffix causal> keys<e4m3 scale row> values<bf16>
    paging<page_major page 64>

// -----

// expected-error @below {{'attn.kernel' op the generator does not cover 'values' element int8 yet; bf16 and fp16 work}}
attn.kernel @values_element heads<4 over 2, dim 64> tokens<2>
    sees<prefix all, suffix causal> keys<bf16> values<int8 scale group of 16>
    paging<page_major page 64>

// -----

// expected-error @below {{'attn.kernel' op the generator does not cover 'heads' dim 96 yet; 64, 128 and 256 work}}
attn.kernel @dim heads<4 over 2, dim 96> tokens<2>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 64>

// -----

// expected-error @below {{'attn.kernel' op the generator does not cover 'heads' value_dim 128 yet; the key's 64 works}}
attn.kernel @value_dim heads<4 over 2, dim 64 value_dim 128> tokens<2>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 64>

// -----

// expected-error @below {{'attn.kernel' op the generator does not cover 'heads' group 17 yet; 1 to 16 work}}
attn.kernel @group heads<34 over 2, dim 64> tokens<2>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 64>

// -----

// expected-error @below {{'attn.kernel' op the generator does not cover 'sees' suffix ancestors yet; causal and bidirectional work}}
attn.kernel @ancestors heads<4 over 2, dim 64> tokens<2>
    sees<prefix all, suffix ancestors> keys<bf16> values<bf16>
    paging<page_major page 64>

// -----

// expected-error @below {{'attn.kernel' op the generator does not cover 'sees' within 1073741825 yet; up to 1073741824 works}}
attn.kernel @window heads<4 over 2, dim 64> tokens<2>
    sees<prefix symmetric within 1073741825, suffix bidirectional> keys<bf16> values<bf16>
    paging<page_major page 64>

// -----

// expected-error @below {{'attn.kernel' op the generator does not cover 'split' of 1073741952 yet; up to 1073741824 works}}
attn.kernel @split_size heads<4 over 2, dim 64> tokens<2>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 64> split<keys of 1073741952>

// -----

// expected-error @below {{'attn.kernel' op the generator does not cover 'split' keys of 100 yet; multiples of 16 work}}
attn.kernel @split_part heads<4 over 2, dim 64> tokens<2>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 64> split<keys of 100>

// -----

// expected-error @below {{'attn.kernel' op the generator does not cover 'split' pieces of 3 yet; 4 to 256 work}}
attn.kernel @few_pieces heads<4 over 2, dim 64> tokens<2>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 64> split<pieces of 3>

// -----

// Rows whose positions are far apart have pieces of many sizes.
// expected-error @below {{'attn.kernel' op the generator does not cover 'split' pieces with given positions yet; keys and auto work}}
attn.kernel @pieces_of_positions heads<4 over 2, dim 64> tokens<2>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 64> query<bf16 token_major positions given>
    split<pieces of 33>

// -----

// expected-error @below {{'attn.kernel' op the generator does not cover 'paging' page 8 yet; 16 to 256 work}}
attn.kernel @small_page heads<4 over 2, dim 64> tokens<2>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 8>

// -----

// expected-error @below {{'attn.kernel' op the generator does not cover 'paging' page 512 yet; 16 to 256 work}}
attn.kernel @large_page heads<4 over 2, dim 64> tokens<2>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 512>

// -----

// expected-error @below {{'attn.kernel' op the generator does not cover 'paging' ids i64 yet; i32 works}}
attn.kernel @ids heads<4 over 2, dim 64> tokens<2>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 64 ids i64>

// -----

// expected-error @below {{'attn.kernel' op the generator does not cover 'softcap' 3.000000e+01 yet; none works}}
attn.kernel @softcap heads<4 over 2, dim 64> tokens<2>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 64> softcap<30.0>

// -----

// expected-error @below {{'attn.kernel' op the generator does not cover 'latent' true yet; separate planes work}}
attn.kernel @latent heads<4 over 2, dim 64> tokens<2>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 64> latent

// -----

// expected-error @below {{'attn.kernel' op the generator does not cover 'score' region yet; none works}}
attn.kernel @score heads<4 over 2, dim 64> tokens<2>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 64> score {
^bb0(%s: f32, %head: index, %position: index, %key: index):
  attn.yield %s : f32
}
