import { render } from "preact";
import { followVisibility } from "./api/live.js";
import { askSession } from "./api/session.js";
import { App } from "./app.js";
import "./style.css";

const page = document.getElementById("page");
if (page) {
  page.replaceChildren();
  render(<App />, page);
}
followVisibility();
void askSession();
