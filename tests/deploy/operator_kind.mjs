// Reads {"kind", ...} from stdin and validates it as Prometheus' operator would, with the package
// whose node_modules is the argument. Prints what is wrong.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const object = JSON.parse(readFileSync(0, "utf8"));
const path = join(process.argv[2], "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1", `${object.kind}.js`);
const kind = (await import(pathToFileURL(path).href))[object.kind];
try {
  new kind(object).validate();
} catch (error) {
  console.log(error.message);
  process.exitCode = 1;
}
