// The part of `outbox status` about adopted tables.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "cli/output.hpp"
#include "store/adoption.hpp"

namespace outbox::cli {

using Adoptions = std::vector<store::AdoptionRow>;

void print_adoptions(const Adoptions& adoptions);
[[nodiscard]] Json adoptions_to_json(const Adoptions& adoptions);

}  // namespace outbox::cli
