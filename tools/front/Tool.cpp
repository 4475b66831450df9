//===- Tool.cpp - What every main does ------------------------------------===//

#include "tools/front/Tool.h"

#include "llvm/Support/Error.h"

#include <iostream>

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
  return Status(StatusCode::InvalidArgument,
                onOneLine(llvm::toString(std::move(error))));
}

static int complain(CLI::App &app, const std::string &message) {
  std::cerr << app.get_name() << ": error: " << onOneLine(message) << std::endl;
  return exitBadInput;
}

int tokentile::runTool(CLI::App &app, int argc, char **argv,
                       const std::function<StatusOr<int>()> &body) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &success) {
    return app.exit(success);
  } catch (const CLI::ParseError &error) {
    return complain(app, std::string(error.what()) + "; see --help");
  }
  StatusOr<int> status = body();
  return status.ok() ? *status : complain(app, status.status().message());
}
