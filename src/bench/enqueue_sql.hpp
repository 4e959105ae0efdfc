// What an event costs a writer in another language: outbox.enqueue(), the views new_event and event_in.
#pragma once

#include <outbox/error.hpp>
#include <vector>

#include "bench/figure.hpp"
#include "bench/postgres_fixture.hpp"

namespace outbox::bench {

/// Needs the tables of the benchmark `enqueue` in the fixture's schema.
[[nodiscard]] Result<std::vector<Figure>> measure_enqueue_sql(const PostgresFixture& log);

}  // namespace outbox::bench
