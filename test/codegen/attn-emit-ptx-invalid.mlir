// RUN: ninfer-opt %s -split-input-file -attn-emit-ptx="output=%t.ptx" -verify-diagnostics

// expected-error @below {{gpu.module @no_target has no #nvvm.target}}
gpu.module @no_target {
}

// -----

gpu.module @first [#nvvm.target<chip = "sm_80">] {
}
// expected-error @below {{expected one kernel for one PTX file, got 2}}
gpu.module @second [#nvvm.target<chip = "sm_80">] {
}
