//===- Report.cpp - Measurements as a table and as JSON -------------------===//

#include "bench/Report.h"

#include <cstdio>
#include <nlohmann/json.hpp>

using namespace tokentile;

using Json = nlohmann::ordered_json;

std::string tokentile::tableHead() {
  char line[200];
  std::snprintf(line, sizeof(line),
                "%6s %8s %5s %-10s %-12s %4s %6s %6s %9s %6s %9s %7s %9s %6s",
                "tokens", "context", "batch", "table", "mode", "rows", "sweeps",
                "splits", "median us", "spread", "MB", "GB/s", "floor us",
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
      tableName(record.shape.table), record.mode.c_str(), record.rows,
      record.sweeps, record.splits, record.timing.median,
      record.timing.spreadPercent, record.bytes / 1e6,
      record.gigabytesPerSecond(), floor);
  return line;
}

static Json timingJson(const Timing &timing) {
  return {{"median_us", timing.median},
          {"min_us", timing.min},
          {"p95_us", timing.p95},
          {"spread_percent", timing.spreadPercent}};
}

std::string tokentile::toJson(const DeviceFacts &device, double nothing,
                              int samples,
                              const std::vector<BenchRecord> &records) {
  Json list = Json::array();
  for (const BenchRecord &record : records) {
    Json json = {{"kernel", record.kernel},
                 {"mode", record.mode},
                 {"tokens", record.shape.tokens},
                 {"context", record.shape.context},
                 {"batch", record.shape.batch},
                 {"table", tableName(record.shape.table)},
                 {"rows", record.rows},
                 {"sweeps", record.sweeps},
                 {"splits", record.splits},
                 {"bytes", record.bytes},
                 {"time", timingJson(record.timing)},
                 {"gigabytes_per_second", record.gigabytesPerSecond()}};
    if (record.floor) {
      json["floor"] = timingJson(record.floor->timing);
      json["floor_shape"] = record.floor->shape;
    }
    list.push_back(std::move(json));
  }
  Json json = {{"device", device.name},
               {"chip", device.chip},
               {"multiprocessors", device.multiprocessors},
               {"cache", device.kind == DeviceKind::Cuda ? "cold" : "warm"},
               {"samples", samples},
               {"empty_kernel_us", nothing},
               {"records", std::move(list)}};
  return json.dump(2) + "\n";
}
