// Schedules that the host cannot have, and chips that nobody knows.
//
// RUN: ninfer-opt %s -split-input-file -attn-select-schedule=chip=host -verify-diagnostics
// RUN: not ninfer-opt %s -attn-select-schedule=chip=sm_70 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not ninfer-opt %s -attn-select-schedule 2>&1 | FileCheck %s --check-prefix=NONE

// UNKNOWN: error: 'attn.kernel' op unknown chip "sm_70", expected one of host sm_80 sm_86 sm_89 sm_90a sm_100a sm_120a sm_121a
// NONE: error: 'attn.kernel' op unknown chip "", expected one of host sm_80 sm_86 sm_89 sm_90a sm_100a sm_120a sm_121a

// expected-error @below {{'attn.kernel' op lowering mma does not run on host; host does}}
attn.kernel @lowering heads<4 over 2, dim 64> tokens<2>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 64> schedule<mma>

// -----

// expected-error @below {{'attn.kernel' op 'split' of 48 keys is not a multiple of key_tile 32}}
attn.kernel @split_size heads<4 over 2, dim 64> tokens<2>
    sees<prefix all, suffix causal> keys<bf16> values<bf16>
    paging<page_major page 64> split<keys of 48>
