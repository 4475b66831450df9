//===- DraftSampler.cpp - Draft tokens out of draft logits ----------------===//

#include "runtime/DraftSampler.h"

using namespace tokentile;
using services::DraftSampleArgs;

StatusOr<DraftSampler> DraftSampler::create(Device &device) {
  StatusOr<ServiceKernel<DraftSampleArgs>> kernel =
      ServiceKernel<DraftSampleArgs>::create(device, "sampleDrafts",
                                             services::sampleDrafts);
  if (!kernel.ok())
    return kernel.status();
  return DraftSampler(*std::move(kernel));
}

Status DraftSampler::sample(const StepBatch &batch, const float *logits,
                            int32_t vocabulary, DraftDistribution distribution,
                            Stream &stream) const {
  if (distribution == DraftDistribution::Sparse)
    return Status(StatusCode::InvalidArgument,
                  "draft distribution sparse: a draft with a support chooses "
                  "its tokens itself");
  DraftSampleArgs args = {};
  args.logits = logits;
  args.temperatures = batch.temperatures;
  args.seeds = batch.seeds;
  args.lengths = batch.lengths;
  args.tokens = batch.tokens;
  if (distribution == DraftDistribution::Full)
    args.probabilities = batch.draftProbabilities;
  args.batch = batch.shape.batch;
  args.drafts = batch.shape.drafts();
  args.vocabulary = vocabulary;
  return kernel.launch({args.drafts, args.batch, 1}, services::teamThreads,
                       args, stream);
}
