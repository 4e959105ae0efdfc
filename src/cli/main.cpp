// The program `outbox`.
#include "cli/context.hpp"
#include "cli/program.hpp"
#include "cli/verbs.hpp"

namespace outbox::cli {

void add_verbs(CLI::App& root, Context& context) {
  context.add_options(root);
  add_init(root, context);
  add_migrate(root, context);
  add_enqueue(root, context);
  add_relay(root, context);
  add_work(root, context);
  add_consume(root, context);
  add_status(root, context);
  add_top(root, context);
  add_subscription(root, context);
  add_events(root, context);
  add_parked(root, context);
  add_tasks(root, context);
  add_inbox(root, context);
  add_verify(root, context);
  add_replay(root, context);
  add_prune(root, context);
  add_adopt(root, context);
  add_audit(root, context);
  add_doctor(root, context);
  add_sinks(root, context);
  add_config(root, context);
  add_completion(root, context);
  add_man(root, context);
  add_console(root, context);
  add_version(root, context);
}

}  // namespace outbox::cli

int main(int argc, char** argv) {
  outbox::cli::Context context;
  return outbox::cli::run_program(
      {.name = "outbox",
       .help =
           "Transactional outbox: events written with the data they are about, delivered from there.",
       .add = [&context](CLI::App& root) { outbox::cli::add_verbs(root, context); }},
      argc, argv);
}
