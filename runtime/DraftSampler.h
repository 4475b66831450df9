//===- DraftSampler.h - Draft tokens out of draft logits --------*- C++ -*-===//
//
// For drafts that make logits and leave the choice to the decoder: the greatest
// logit, or a token drawn at the request's temperature together with the
// distribution that it was drawn from.
//
//===----------------------------------------------------------------------===//

#ifndef TOKENTILE_RUNTIME_DRAFTSAMPLER_H
#define TOKENTILE_RUNTIME_DRAFTSAMPLER_H

#include "runtime/ServiceKernel.h"
#include "runtime/SpecModel.h"
#include "runtime/services/Sample.h"

namespace tokentile {

class DraftSampler {
public:
  /// Compiles the kernel on CUDA. Unavailable without NVRTC.
  static StatusOr<DraftSampler> create(Device &device);

  /// Queues the choice of the drafts of `batch` out of `logits`, float [batch,
  /// drafts, vocabulary], for a draft whose distribution() is OneHot or Full;
  /// capturable. InvalidArgument for Sparse: its draft chooses itself.
  Status sample(const StepBatch &batch, const float *logits, int32_t vocabulary,
                DraftDistribution distribution, Stream &stream) const;

private:
  explicit DraftSampler(ServiceKernel<services::DraftSampleArgs> kernel)
      : kernel(std::move(kernel)) {}
  ServiceKernel<services::DraftSampleArgs> kernel;
};

} // namespace tokentile

#endif // TOKENTILE_RUNTIME_DRAFTSAMPLER_H
