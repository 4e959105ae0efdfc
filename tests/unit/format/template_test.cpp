#include "format/template.hpp"

#include <gtest/gtest.h>

#include <string>

#include "event/time_text.hpp"

namespace outbox::format {
namespace {

EventView purchase() {
  EventView event;
  event.seq = 42;
  event.id = EventId::parse("018f3b1c-7a2e-7c3d-8e4f-0123456789ab").value();
  event.aggregate_type = "PurchaseOrder";
  event.aggregate_id = "A-7";
  event.event_type = "OrderPlaced";
  event.content_type = "application/json";
  event.headers = R"({"tenant": "Acme"})";
  event.created_at = event::timestamp(1'714'566'896'123'456);
  return event;
}

std::string render(std::string_view text, const EventView& event = purchase()) {
  auto made = Template::compile("topic", text);
  if (!made) return "error: " + made.error().text();
  event::Arena arena;
  return std::string(made->render(event, arena));
}

std::string words(std::string_view filter, std::string_view type) {
  EventView event = purchase();
  event.event_type = type;
  return render("{event_type|" + std::string(filter) + "}", event);
}

TEST(Template, every_field) {
  EXPECT_EQ(render("{aggregate_type}/{aggregate_id}/{event_type}/{seq}"),
            "PurchaseOrder/A-7/OrderPlaced/42");
  EXPECT_EQ(render("{id}"), "018f3b1c-7a2e-7c3d-8e4f-0123456789ab");
  EXPECT_EQ(render("{content_type}"), "application/json");
  EXPECT_EQ(render("{created_at}"), "2024-05-01T12:34:56.123456Z");
  EXPECT_EQ(render("{occurred_at}"), "2024-05-01T12:34:56.123456Z");
  EXPECT_EQ(render("{header:Tenant}.{header:missing}."), "Acme..");
}

TEST(Template, values_of_the_payload) {
  EventView event = purchase();
  event.payload =
      R"({"customer": {"name": "Zo\u00eb", "vip": true}, "lines": [{"sku": "a"}, {"sku": "b"}], "none": null})";
  EXPECT_EQ(render("{json:customer.name}/{json:customer.vip}/{json:lines.1.sku}", event),
            "Zoë/true/b");
  EXPECT_EQ(render("{json:customer}", event), R"({"name": "Zo\u00eb", "vip": true})");
  for (const char* nothing : {"{json:none}", "{json:lines.2.sku}", "{json:lines.x}",
                              "{json:customer.name.first}", "{json:other}"}) {
    EXPECT_EQ(render(nothing, event), "") << nothing;
  }
  event.payload = "not json";
  EXPECT_EQ(render("{json:customer.name|default:nobody}", event), "nobody");
  EXPECT_EQ(
      render("{json:}"),
      "error: topic: bad path '' at position 2 (hint: write names and numbers between dots, for example {json:lines.0.sku})");
}

TEST(Template, a_default_takes_the_place_of_an_empty_value) {
  EXPECT_EQ(render("{header:tenant|default:all}/{header:region|default:all|upper}"), "Acme/ALL");
  EXPECT_EQ(render("{header:region|default}"),
            "error: topic: unknown filter 'default' at position 16 (hint: write default:TEXT)");
}

TEST(Template, filters_apply_from_left_to_right) {
  EXPECT_EQ(render("{aggregate_type|lower}.events"), "purchaseorder.events");
  EXPECT_EQ(render("{aggregate_type|upper}"), "PURCHASEORDER");
  EXPECT_EQ(render("{aggregate_type|kebab|upper}"), "PURCHASE-ORDER");
  EXPECT_EQ(render("{aggregate_type|upper|snake}"), "purchaseorder");
  EXPECT_EQ(render("{header:tenant|lower}"), "acme");
}

TEST(Template, kebab_and_snake_find_the_words) {
  EXPECT_EQ(words("kebab", "OrderPlaced"), "order-placed");
  EXPECT_EQ(words("snake", "OrderPlaced"), "order_placed");
  EXPECT_EQ(words("kebab", "HTTPServerStarted"), "http-server-started");
  EXPECT_EQ(words("kebab", "orderPlacedV2"), "order-placed-v2");
  EXPECT_EQ(words("kebab", "Order2Placed"), "order2-placed");
  EXPECT_EQ(words("kebab", "order_placed now"), "order-placed-now");
  EXPECT_EQ(words("snake", "order-placed"), "order_placed");
  EXPECT_EQ(words("kebab", "shop.OrderPlaced"), "shop.order-placed");
  EXPECT_EQ(words("kebab", "X"), "x");
  EXPECT_EQ(words("kebab", ""), "");
  EXPECT_EQ(words("kebab", "Gr\xc3\xbcnesLicht"), "gr\xc3\xbcnes-licht");
}

TEST(Template, doubled_braces_are_the_characters) {
  EXPECT_EQ(render("{{{seq}}}"), "{42}");
  EXPECT_EQ(render("a{{b}}c"), "a{b}c");
  EXPECT_EQ(render(""), "");
  EXPECT_EQ(render("plain"), "plain");
}

TEST(Template, many_parts_are_fine) {
  std::string text;
  std::string wanted;
  for (int i = 0; i < 50; ++i) {
    text += "{seq}-{id}.";
    wanted += "42-018f3b1c-7a2e-7c3d-8e4f-0123456789ab.";
  }
  EXPECT_EQ(render(text), wanted);
}

TEST(Template, one_field_or_a_constant_is_not_copied) {
  const EventView event = purchase();
  event::Arena arena;
  const auto field = Template::compile("key", "{aggregate_id}").value();
  EXPECT_EQ(field.render(event, arena).data(), event.aggregate_id.data());
  const auto constant = Template::compile("topic", "orders").value();
  EXPECT_EQ(constant.render(event, arena).data(), constant.render(event, arena).data());
}

TEST(Template, errors_name_the_place_and_the_word_that_was_meant) {
  EXPECT_EQ(
      render("x.{agregate_type}"),
      "error: topic: unknown field 'agregate_type' at position 4 (hint: did you mean aggregate_type?)");
  EXPECT_EQ(render("{seq|loweer}"),
            "error: topic: unknown filter 'loweer' at position 6 (hint: did you mean lower?)");
  EXPECT_EQ(
      render("{seq|frobnicate}"),
      "error: topic: unknown filter 'frobnicate' at position 6 (hint: known are lower, upper, kebab, snake, default:TEXT)");
  EXPECT_EQ(
      render("a{seq"),
      "error: topic: '{' without '}' at position 2 (hint: write {{ for the character itself)");
  EXPECT_EQ(
      render("a{seq{id}}"),
      "error: topic: '{' without '}' at position 2 (hint: write {{ for the character itself)");
  EXPECT_EQ(
      render("a}b"),
      "error: topic: '}' without '{' at position 2 (hint: write }} for the character itself)");
  EXPECT_EQ(
      render("{seq}}"),
      "error: topic: '}' without '{' at position 6 (hint: write }} for the character itself)");
  EXPECT_EQ(
      render("{header:a b}"),
      "error: topic: bad header name 'a b' at position 2 (hint: write {header:NAME}, for example {header:tenant})");
  EXPECT_EQ(render("{}").substr(0, 40), "error: topic: missing field at position ");
  EXPECT_EQ(render("{seq|}").substr(0, 42), "error: topic: missing filter at position 6");
  EXPECT_EQ(render("{ seq }").substr(0, 27), "error: topic: unknown field");
  EXPECT_EQ(render("{header}"),
            "error: topic: unknown field 'header' at position 2 (hint: write {header:NAME})");
}

Template compiled(std::string_view text) { return Template::compile("topic", text).value(); }

TEST(Template, knows_whether_it_is_the_same_for_all_events) {
  EXPECT_EQ(compiled("orders").fixed(), "orders");
  EXPECT_EQ(compiled("a{{b}}").fixed(), "a{b}");
  EXPECT_EQ(compiled("{aggregate_type}.events").fixed(), std::nullopt);
}

TEST(Template, knows_what_it_may_make) {
  const auto makes = [](std::string_view text, std::string_view name) {
    return compiled(text).may_make(name);
  };
  EXPECT_TRUE(makes("orders", "orders"));
  EXPECT_FALSE(makes("orders", "orders2"));
  EXPECT_FALSE(makes("orders", "order"));
  EXPECT_TRUE(makes("{aggregate_type|lower}.events", "order.events"));
  EXPECT_TRUE(makes("{aggregate_type|lower}.events", "a.events.events"));
  EXPECT_FALSE(makes("{aggregate_type|lower}.events", "Order.events"))
      << "it has an upper case letter";
  EXPECT_TRUE(makes("{aggregate_type|upper}.events", "ORDER.events"));
  EXPECT_FALSE(makes("{aggregate_type|upper}.events", "order.events"));
  EXPECT_TRUE(makes("{aggregate_type}.events", "Order.events"));
  EXPECT_FALSE(makes("{aggregate_type|lower}.events", "order.events.v2"));
  EXPECT_TRUE(makes("{header:tenant}", "")) << "an event may lack the header";
  EXPECT_TRUE(makes("shop.{aggregate_type}-{event_type|kebab}.v1", "shop.Order-order-placed.v1"));
  EXPECT_FALSE(makes("shop.{aggregate_type}-{event_type|kebab}.v1", "shop.Order.v1"));
}

/// may_make() must hold for each text that the template makes.
TEST(Template, may_make_what_it_makes) {
  for (const char* text :
       {"{aggregate_type}", "{aggregate_type|lower}.{event_type|kebab}", "{event_type|snake|upper}",
        "{header:tenant|lower}{seq}", "{id}.{created_at}", "x{aggregate_id}{aggregate_id}", ""}) {
    EXPECT_TRUE(compiled(text).may_make(render(text))) << text << " -> " << render(text);
  }
}

}  // namespace
}  // namespace outbox::format
