//===- Npy.cpp - Tensors as .npy files ------------------------------------===//
//
// Format 1.0 of numpy.lib.format: a magic string, the length of a header that
// is a Python dictionary padded with blanks to 64 bytes, then the elements.
//
//===----------------------------------------------------------------------===//

#include "test/numerics/Npy.h"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>

namespace tokentile {

namespace {

/// Types as numpy writes them.
const char *descriptorOf(const std::string &element) {
  return element == "bf16"   ? "<u2"
         : element == "fp16" ? "<f2"
         : element == "fp32" ? "<f4"
         : element == "fp64" ? "<f8"
                             : "<i4";
}

std::string headerOf(const std::string &element,
                     const std::vector<int64_t> &shape) {
  std::string header = std::string("{'descr': '") + descriptorOf(element) +
                       "', 'fortran_order': False, 'shape': (";
  for (int64_t extent : shape)
    header += std::to_string(extent) + ",";
  header += "), }";
  // Magic, version and length take ten bytes; a line feed ends the header.
  while ((header.size() + 11) % 64)
    header += ' ';
  header += '\n';
  std::string start("\x93NUMPY\x01\x00", 8);
  start += char(header.size() & 255);
  start += char(header.size() >> 8);
  return start + header;
}

/// The elements without the gaps between rows.
std::string pack(const HostTensor &tensor) {
  std::string packed;
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < tensor.shape.size(); ++i)
    rows *= tensor.shape[i];
  int64_t row = tensor.shape.back() * tensor.strides.back();
  for (int64_t index = 0; index < rows; ++index) {
    int64_t at = 0, rest = index;
    for (size_t i = tensor.shape.size() - 1; i-- > 0;) {
      at += rest % tensor.shape[i] * tensor.strides[i];
      rest /= tensor.shape[i];
    }
    packed.append(reinterpret_cast<const char *>(tensor.data()) + at, row);
  }
  return packed;
}

class Dump {
public:
  Dump(const std::string &folder, std::string &error)
      : folder(folder), error(error) {}

  void write(const std::string &name, const std::string &element,
             const std::vector<int64_t> &shape, const std::string &bytes) {
    writeFile(name + ".npy", headerOf(element, shape) + bytes);
    json["tensors"][name] = {{"element", element},
                             {"shape", shape},
                             {"stored_as", descriptorOf(element)}};
  }

  void write(const std::string &name, const std::vector<double> &values,
             const std::vector<int64_t> &shape) {
    write(name, "fp64", shape,
          std::string(reinterpret_cast<const char *>(values.data()),
                      values.size() * sizeof(double)));
  }

  void writeFile(const std::string &name, const std::string &bytes) {
    std::filesystem::path path = std::filesystem::path(folder) / name;
    std::ofstream stream(path, std::ios::binary);
    stream.write(bytes.data(), std::streamsize(bytes.size()));
    stream.close();
    if (!stream && error.empty())
      error = "cannot write " + path.string();
  }

  nlohmann::ordered_json json;

private:
  const std::string &folder;
  std::string &error;
};

} // namespace

bool dumpProblem(const Problem &problem, const std::string &folder,
                 std::string &error) {
  error.clear();
  std::error_code code;
  std::filesystem::create_directories(folder, code);
  if (code) {
    error = "cannot make " + folder + ": " + code.message();
    return false;
  }
  Dump dump(folder, error);
  const Case &testCase = problem.getCase();
  dump.json["spec"] = testCase.specText;
  dump.json["batch"] = testCase.batch;
  dump.json["contexts"] = testCase.contexts;
  dump.json["columns"] = testCase.columns;
  dump.json["lengths"] = testCase.lengths;
  dump.json["max_keys"] = problem.getMaxKeys();
  dump.json["seed"] = testCase.seed;
  dump.json["note"] = "bf16 is stored as uint16: the upper half of an fp32; "
                      "'keys_values' holds both planes, whose types the spec "
                      "names; output and lse are what the host tensors hold";
  for (const HostTensor &tensor : problem.getTensors())
    dump.write(tensor.name, tensor.element, tensor.shape, pack(tensor));
  const attn::ReferenceResult &reference = problem.getReference();
  std::vector<int64_t> rows = {reference.tokens, reference.heads};
  std::vector<int64_t> shape = {reference.tokens, reference.heads,
                                reference.dim};
  dump.write("reference", reference.output, shape);
  dump.write("naive", reference.naiveOutput, shape);
  dump.write("reference_lse", reference.logSumExp, rows);
  dump.write("naive_lse", reference.naiveLogSumExp, rows);
  dump.writeFile("problem.json", dump.json.dump(2) + "\n");
  return error.empty();
}

} // namespace tokentile
