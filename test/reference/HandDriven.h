//===- HandDriven.h - Models stepped without a decoder ----------*- C++ -*-===//

#ifndef TOKENTILE_TEST_REFERENCE_HANDDRIVEN_H
#define TOKENTILE_TEST_REFERENCE_HANDDRIVEN_H

#include "tools/reference-model/ReferenceRig.h"

#include <gtest/gtest.h>

namespace tokentile::reference {

/// The arrays of a step, filled from vectors; prompts and kept rows are the
/// caller's choice.
class HandDriven {
public:
  HandDriven(Device &device, const RigShape &shape,
             const ModelSource<TargetConfig> &target,
             const ModelSource<DraftConfig> &draft, DraftRoute route)
      : device(device) {
    auto made = ReferenceRig::create(device, shape, target, &draft, route);
    EXPECT_TRUE(made.ok()) << made.status().toString();
    rig = *std::move(made);
    stream = *device.createStream();
    for (int32_t slot = 0; slot < shape.batch; ++slot)
      expectOk(rig->getTables().admit(slot, slot));
  }

  using Rows = std::vector<std::vector<float>>;

  /// One step of `width` rows a request: `tokens` by request, of which the
  /// first `kept` are committed and appended to the draft. Logits of every row
  /// of each request, none of a prompt step.
  std::vector<Rows> step(const std::vector<std::vector<int32_t>> &tokens,
                         const std::vector<int32_t> &kept, int32_t width,
                         bool prompt) {
    BlockTables &tables = rig->getTables();
    int32_t batch = int32_t(tokens.size());
    for (int32_t b = 0; b < batch; ++b)
      if (int32_t rows = int32_t(tokens[b].size()))
        expectOk(prompt ? tables.append(b, rows) : tables.propose(b, rows));
    StepBatch made = makeBatch(tokens, kept, width, prompt);
    expectOk(rig->getTarget().prepare(made.shape));
    expectOk(rig->getTarget().forward(made, *stream));
    expectOk(rig->getDraft()->append(made, *stream));
    expectOk(stream->synchronize());
    int32_t vocabulary = rig->getTarget().vocabulary();
    std::vector<Rows> logits(batch);
    for (int32_t b = 0; b < batch; ++b)
      for (int32_t i = 0; i < (prompt ? 0 : width); ++i) {
        std::vector<float> row(vocabulary);
        expectOk(device.copyToHost(
            row.data(), made.logits + (b * width + i) * int64_t(vocabulary),
            row.size() * sizeof(float)));
        logits[b].push_back(std::move(row));
      }
    for (int32_t b = 0; b < batch; ++b)
      if (!tokens[b].empty())
        expectOk(tables.commit(b, kept[b]));
    return logits;
  }

  /// The tokens that the draft proposes after `anchors`, -1 for padding:
  /// [batch, width - 1], those of padding left out.
  std::vector<int32_t> propose(const std::vector<int32_t> &anchors,
                               int32_t width) {
    std::vector<std::vector<int32_t>> tokens;
    for (int32_t anchor : anchors)
      tokens.push_back(anchor < 0 ? std::vector<int32_t>()
                                  : std::vector<int32_t>(width, anchor));
    StepBatch made = makeBatch(tokens, std::vector<int32_t>(anchors.size(), 0),
                               width, false);
    expectOk(rig->getDraft()->prepare(made.shape));
    expectOk(rig->getDraft()->propose(made, *stream));
    expectOk(stream->synchronize());
    std::vector<int32_t> rows(anchors.size() * width), proposals;
    expectOk(device.copyToHost(rows.data(), made.tokens, rows.size() * 4));
    for (size_t b = 0; b < anchors.size(); ++b)
      if (anchors[b] >= 0)
        proposals.insert(proposals.end(), rows.begin() + b * width + 1,
                         rows.begin() + (b + 1) * width);
    return proposals;
  }

  /// Logits of the first `rows` of them.
  Rows proposalLogits(int32_t rows) {
    Rows logits(size_t(rows),
                std::vector<float>(size_t(rig->getDraft()->vocabulary())));
    const float *from = rig->getDraft()->proposalLogits().as<float>();
    for (std::vector<float> &row : logits) {
      expectOk(device.copyToHost(row.data(), from, row.size() * sizeof(float)));
      from += row.size();
    }
    return logits;
  }

  int32_t length(int32_t slot) const { return rig->getTables().length(slot); }

private:
  static void expectOk(const Status &status) {
    EXPECT_TRUE(status.ok()) << status.toString();
  }

  template <typename T>
  T *put(const std::vector<T> &values) {
    buffers.push_back(*device.allocate(values.size() * sizeof(T)));
    expectOk(device.copyToDevice(buffers.back().data(), values.data(),
                                 values.size() * sizeof(T)));
    return buffers.back().template as<T>();
  }

  StepBatch makeBatch(const std::vector<std::vector<int32_t>> &tokens,
                      const std::vector<int32_t> &kept, int32_t width,
                      bool prompt) {
    buffers.clear();
    BlockTables &tables = rig->getTables();
    StepBatch batch;
    batch.shape = {int32_t(tokens.size()), width, prompt};
    std::vector<int32_t> ids, positions, columns, lengths;
    std::vector<uint64_t> seeds;
    for (int32_t b = 0; b < batch.shape.batch; ++b) {
      columns.push_back(int32_t(tokens[b].size()));
      lengths.push_back(tokens[b].empty() ? 0 : tables.length(b));
      seeds.push_back(b);
      for (int32_t i = 0; i < width; ++i) {
        ids.push_back(i < columns[b] ? tokens[b][i] : 0);
        positions.push_back(lengths[b] + i);
      }
    }
    expectOk(tables.upload(*stream));
    expectOk(stream->synchronize());
    batch.tokens = put(ids);
    batch.positions = put(positions);
    batch.columns = put(columns);
    batch.lengths = put(lengths);
    batch.accepted = put(kept);
    batch.seeds = put(seeds);
    for (size_t c = 0; c < rig->getPlan().tables.size(); ++c)
      batch.tables.push_back(
          {tables.deviceTable(int32_t(c)), tables.stride(int32_t(c))});
    if (!prompt)
      batch.logits = put(std::vector<float>(size_t(batch.shape.rows()) *
                                            rig->getTarget().vocabulary()));
    return batch;
  }

  Device &device;
  std::unique_ptr<ReferenceRig> rig;
  std::unique_ptr<Stream> stream;
  std::vector<Buffer> buffers;
};

} // namespace tokentile::reference

#endif // TOKENTILE_TEST_REFERENCE_HANDDRIVEN_H
