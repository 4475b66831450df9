//===- Tool.cpp - What every main does ------------------------------------===//

#include "tools/front/Tool.h"

#include "codegen/Compiler.h"

#include <iostream>
#include <new>
#include <stdexcept>

using namespace tokentile;

std::string tokentile::onOneLine(std::string text) {
  while (!text.empty() && text.back() == '\n')
    text.pop_back();
  for (char &c : text)
    if (c == '\n')
      c = ' ';
  return text;
}

Status tokentile::toStatus(llvm::Error error) {
  StatusCode code = error.isA<NotCovered>() ? StatusCode::NotCovered
                                            : StatusCode::InvalidArgument;
  return Status(code, onOneLine(llvm::toString(std::move(error))));
}

static int complain(CLI::App &app, const std::string &message) {
  std::cerr << app.get_name() << ": error: " << onOneLine(message) << std::endl;
  return exitBadInput;
}

static const char *const tooLarge =
    "host memory runs out; a smaller --context or --batch works";

int tokentile::runTool(CLI::App &app, int argc, char **argv,
                       const std::function<StatusOr<int>()> &body) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &success) {
    return app.exit(success);
  } catch (const CLI::ParseError &error) {
    return complain(app, std::string(error.what()) + "; see --help");
  }
  try {
    StatusOr<int> status = body();
    return status.ok() ? *status : complain(app, status.status().message());
  } catch (const std::bad_alloc &) {
    return complain(app, tooLarge);
  } catch (const std::length_error &) {
    return complain(app, tooLarge);
  }
}
