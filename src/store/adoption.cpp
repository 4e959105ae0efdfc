#include "store/adoption.hpp"

namespace outbox::store {
namespace {

std::string trigger_text(const AdoptionRow& row, const char* what) {
  std::string text = "its trigger outbox_adopt ";
  text += what;
  if (!row.fault_at.empty()) text += " on partition " + row.fault_at;
  return text;
}

}  // namespace

const char* layout_text(bool debezium) noexcept {
  return debezium ? "Debezium's" : "written by hand";
}

std::string fault_text(const AdoptionRow& row) {
  switch (row.fault) {
    case AdoptionFault::none: return "";
    case AdoptionFault::dropped: return "the table was dropped";
    case AdoptionFault::remade:
      return row.fault_at.empty()
                 ? "the table was dropped and made again, without its trigger"
                 : "another table has its name; the adopted one is now called " + row.fault_at;
    case AdoptionFault::renamed: return "the table is now called " + row.fault_at;
    case AdoptionFault::no_trigger: return "its trigger outbox_adopt was dropped";
    case AdoptionFault::off: return trigger_text(row, "is disabled");
    case AdoptionFault::replica_only:
      return trigger_text(row, "fires for replicated rows only (ENABLE REPLICA)");
  }
  return "";
}

std::string broken_text(const AdoptionRow& row) {
  const std::string fault = fault_text(row);
  switch (row.fault) {
    case AdoptionFault::none: return "";
    case AdoptionFault::dropped: return fault;
    case AdoptionFault::renamed: return fault + ": its rows are still forwarded";
    default: return fault + ": rows inserted since then are in the table only";
  }
}

}  // namespace outbox::store
