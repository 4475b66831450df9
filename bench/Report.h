//===- Report.h - Measurements as a table and as JSON -----------*- C++ -*-===//

#ifndef TOKENTILE_BENCH_REPORT_H
#define TOKENTILE_BENCH_REPORT_H

#include "bench/Bench.h"

namespace tokentile {

/// The head of the table, and one line of it.
std::string tableHead();
std::string tableLine(const BenchRecord &record);

/// One line of JSON that says all about the record, so that files of several
/// runs can be joined. bench/README.md names the fields. `nothing` is the time
/// of an empty kernel, 0 if it was not measured.
std::string toJsonLine(const DeviceFacts &device, double nothing, int samples,
                       const BenchRecord &record);

} // namespace tokentile

#endif // TOKENTILE_BENCH_REPORT_H
