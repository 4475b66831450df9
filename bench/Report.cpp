//===- Report.cpp - Measurements as a table and as JSON -------------------===//

#include "bench/Report.h"

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

using namespace tokentile;

using Json = nlohmann::ordered_json;

std::string tokentile::tableHead() {
  char line[200];
  std::snprintf(line, sizeof(line),
                "%6s %8s %5s %-10s %-12s %4s %6s %6s %9s %6s %9s %7s %9s %6s",
                "tokens", "context", "batch", "table", "mode", "rows", "sweeps",
                "items", "median us", "spread", "MB", "GB/s", "floor us",
                "ratio");
  return line;
}

std::string tokentile::tableLine(const BenchRecord &record) {
  char floor[40];
  std::snprintf(floor, sizeof(floor), "%9s %6s", "-", "-");
  if (record.floor)
    std::snprintf(floor, sizeof(floor), "%9.1f %6.2f",
                  record.floor->timing.median,
                  record.timing.median / record.floor->timing.median);
  char line[300];
  std::snprintf(
      line, sizeof(line),
      "%6d %8d %5d %-10s %-12s %4d %6d %6d %9.1f %5.1f%% %9.1f %7.0f %s",
      record.shape.tokens, record.shape.context, record.shape.batch,
      tableName(record.shape.table), record.mode.c_str(), record.kernel.rows,
      record.sweeps, record.items, record.timing.median,
      record.timing.spreadPercent, record.bytes / 1e6,
      record.gigabytesPerSecond(), floor);
  return line;
}

/// Device events tick every 32 ns; more digits would only look exact.
static double rounded(double microseconds) {
  return std::round(microseconds * 1e3) / 1e3;
}

static Json timingJson(const Timing &timing) {
  return {{"median_us", rounded(timing.median)},
          {"min_us", rounded(timing.min)},
          {"p95_us", rounded(timing.p95)},
          {"spread_percent", rounded(timing.spreadPercent)}};
}

static const char *layoutName(PageOrder order) {
  switch (order) {
  case PageOrder::PageMajor:
    return "page_major";
  case PageOrder::HeadMajor:
    return "head_major";
  case PageOrder::TokenMajor:
    return "nhd";
  case PageOrder::Contiguous:
    return "contiguous";
  }
  return "?";
}

static Json kernelJson(const KernelInfo &info) {
  bool isCausal = info.spec.find("suffix causal") != std::string::npos;
  return {{"peer", "tokentile"},
          {"kernel", info.name},
          {"query_heads", info.queryHeads},
          {"kv_heads", info.kvHeads},
          {"head_dim", info.headDim},
          {"causal", isCausal},
          {"window", info.window},
          {"page", info.pageSize},
          {"layout", layoutName(info.pageOrder)},
          {"rows", info.rows}};
}

std::string tokentile::toJsonLine(const DeviceFacts &device, double nothing,
                                  int samples, const BenchRecord &record) {
  Json json = kernelJson(record.kernel);
  json.update({{"mode", record.mode},
               {"tokens", record.shape.tokens},
               {"context", record.shape.context},
               {"batch", record.shape.batch},
               {"table", tableName(record.shape.table)},
               {"sweeps", record.sweeps},
               {"items", record.items},
               {"bytes", record.bytes},
               {"time", timingJson(record.timing)}});
  if (!record.shape.contexts.empty())
    json["contexts"] = record.shape.contexts;
  if (record.floor) {
    json["floor"] = timingJson(record.floor->timing);
    json["floor_shape"] = record.floor->shape;
  }
  json.update({{"device", device.name},
               {"chip", device.chip},
               {"cache", device.kind == DeviceKind::Cuda ? "cold" : "warm"},
               {"samples", samples},
               {"empty_kernel_us", rounded(nothing)}});
  return json.dump() + "\n";
}
