// The part of `outbox status` about adopted tables.
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "cli/status_parts.hpp"
#include "cli/table.hpp"
#include "event/time_text.hpp"

namespace outbox::cli {
namespace {

using store::AdoptionRow;

/// The time since which the table is in its state; if it has a fault, since which it was forwarded.
std::string since(const AdoptionRow& row) {
  return event::time_text(row.switched_us.value_or(row.begun_us));
}

/// What keeps the rows of the table from being forwarded; empty if nothing does.
std::string describe_trouble(const AdoptionRow& row) {
  if (row.fault != store::AdoptionFault::none) return store::broken_text(row);
  if (row.is_unfinished() && !row.running)
    return "its adoption was begun and not finished: new rows wait";
  return "";
}

std::string waiting_text(const AdoptionRow& row) {
  return with_commas(row.waiting) + (row.more_waiting ? "+" : "");
}

}  // namespace

void print_adoptions(const Adoptions& adoptions) {
  if (adoptions.empty()) return;
  Table table({"ADOPTED TABLE", "LAYOUT", "STATE", "SINCE", "TAKEN OVER", "WAITING"});
  for (const AdoptionRow& row : adoptions) {
    table.add({plain(row.table), store::layout_text(row.debezium), row.state, since(row),
               with_commas(row.taken_over), waiting_text(row)});
    if (const std::string trouble = describe_trouble(row); !trouble.empty())
      table.note("  " + plain(trouble));
  }
  table.print();
  print("\n");
}

Json adoptions_to_json(const Adoptions& adoptions) {
  Json list = Json::array();
  for (const AdoptionRow& row : adoptions) {
    list.push_back({{"table", row.table},
                    {"layout", store::layout_text(row.debezium)},
                    {"state", row.state},
                    {"since", since(row)},
                    {"taken_over", row.taken_over},
                    {"staged", row.staged},
                    {"waiting", row.waiting},
                    {"waiting_is_more", row.more_waiting},
                    {"trouble", or_null(describe_trouble(row))}});
  }
  return list;
}

}  // namespace outbox::cli
