//===- SpecModel.cpp - What the speculative decoder asks of models --------===//

#include "runtime/SpecModel.h"

using namespace tokentile;

TargetModel::~TargetModel() = default;
DraftModel::~DraftModel() = default;
