// Constraints of encodings and buffers, one case each.
//
// RUN: ninfer-opt %s -split-input-file -verify-diagnostics

// C28: warps fit one block.
// expected-error@+1 {{expected 'warps' with a product from 1 to 32, got 0 by 2}}
!f = tensor<32x64xf32, #attn.fragment<scores warps 0 by 2>>

// -----

// C29: statistics are one number for each row.
// expected-error@+1 {{expected rank 1 in fragments of statistics, got 2}}
!f = tensor<32x64xf32, #attn.fragment<statistics warps 2 by 1>>

// -----

// C30: accumulators are fp32.
// expected-error@+1 {{expected f32 in fragments of output, got 'bf16'}}
!f = tensor<32x64xbf16, #attn.fragment<output warps 2 by 1>>

// -----

// C31: a swizzle spans at most the banks.
// expected-error@+1 {{expected 'swizzle' to be 1, 2, 4 or 8, got 16}}
!s = tensor<64x128xbf16, #attn.shared<swizzle 16>>

// -----

// C32: a swizzle stays inside its row.
// expected-error@+1 {{expected a static 2-D shared tensor whose rows are multiples of 128 bytes, got 'tensor<64x80xbf16>'}}
!s = tensor<64x80xbf16, #attn.shared<swizzle 8>>

// -----

// C33: a buffer has a slot.
// expected-error@+1 {{expected a positive number of slots, got 0}}
!b = !attn.buffer<0 of tensor<64x128xbf16, #attn.shared<swizzle 8>>>

// -----

// C34: a buffer lies in shared memory.
// expected-error@+1 {{expected a tile encoded as #attn.shared, got 'tensor<64x128xbf16>'}}
!b = !attn.buffer<2 of tensor<64x128xbf16>>
