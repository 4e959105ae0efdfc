#!/usr/bin/env python3
"""What a login with CREATE on schema public plants there is never called, whatever verb a superuser runs, and wherever the search path of
the database has the schema.

By default operators are planted for pairs of equal types, of the usual types, and of types that the
server has an operator or an implicit conversion for; with OUTBOX_TEST_LONG=1 for every pair of the
types."""

import functools
import os
import re
import subprocess
import unittest
import uuid

from every_verb import EveryVerb, SANE
from program import DEMO, LONG, POSTGRES, ROOT, create_database, drop_database_later, in_database

TYPES = """text varchar bpchar name "char" bytea integer bigint smallint boolean json jsonb uuid timestamptz timestamp date interval xid xid8
cid tid oid regclass regnamespace regproc regprocedure regtype regrole pg_lsn pg_snapshot real float8 numeric text[] name[]
"char"[] integer[] bigint[] smallint[] oid[] xid8[] uuid[] boolean[] bytea[] int2vector oidvector""".split()
FEW = "text varchar name integer bigint boolean jsonb timestamptz interval xid8 oid regclass pg_lsn numeric text[] name[]".split()
POOLER = os.environ.get("OUTBOX_TEST_PGBOUNCER")
# Of every place with SQL of ours.
SOURCES = ("migrations/postgres", "src/store/postgres", "src/sink/postgres", "src/health", "demo")


def array_of(types):
    return "ARRAY[" + ", ".join(f"'{name}'" for name in types) + "]::regtype[]"


def called():
    """Words before a bracket in SQL of ours: functions, and more."""
    text = " ".join(path.read_text(encoding="utf-8") for folder in SOURCES for path in sorted((ROOT / folder).rglob("*.[chs]*")))
    return sorted(set(re.findall(r"\b([a-z_0-9]+)\(", text)))


# For every operator of the server one for each chosen pair of these types, and for every function that we call one for every type and for
# the usual pairs: whichever fits best raises an error. Those with the very types of the server's own come before these only where the
# search path names the schema first.
PLANT = """
SET check_function_bodies = off;
DO $$
DECLARE
  types   regtype[] := {types};
  few     regtype[] := {few};
  names   text[] := {names};
  it      record;
BEGIN
  CREATE TEMP TABLE pair ON COMMIT DROP AS SELECT l, r FROM unnest(types) l, unnest(types) r
    WHERE {every} OR l = r OR l = ANY (few) AND r = ANY (few)
      OR EXISTS (SELECT FROM pg_operator WHERE oprleft = l AND oprright = r)
      OR EXISTS (SELECT FROM pg_cast WHERE castcontext = 'i' AND (castsource, casttarget) IN ((l, r), (r, l)));
  FOR it IN SELECT l, r FROM pair LOOP
    EXECUTE format('CREATE FUNCTION public.planted(%s, %s) RETURNS boolean LANGUAGE plpgsql AS %L', it.l, it.r,
                   format('BEGIN RAISE EXCEPTION %L; END', format('planted operator of %s and %s', it.l, it.r)));
  END LOOP;
  FOR it IN SELECT o.name, l, r FROM (SELECT DISTINCT oprname::text AS name FROM pg_operator WHERE oprkind = 'b'
                                      AND oprnamespace = 'pg_catalog'::regnamespace AND (oprleft = ANY (types) OR oprname = '=')) o,
                              pair
            WHERE o.name IN ('=', '<>', '<', '>', '<=', '>=', '+', '-', '*', '/', '%', '||', '&', '|', '#', '<<', '>>', '~', '!~', '~~', '!~~',
                             '->', '->>', '#>>', '@>', '<@', '&&', '?') LOOP
    EXECUTE format('CREATE OPERATOR public.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = public.planted)', it.name, it.l, it.r);
  END LOOP;
  FOR it IN SELECT DISTINCT p.proname AS name, f.arguments FROM pg_proc p CROSS JOIN LATERAL (
              SELECT format('%s', a) AS arguments FROM unnest(types) a WHERE p.pronargs = 1 AND NOT p.proretset
              UNION ALL SELECT format('%s, %s', a, b) FROM unnest(few) a, unnest(few) b WHERE p.pronargs = 2 AND NOT p.proretset
              UNION ALL SELECT oidvectortypes(p.proargtypes) WHERE p.pronargs > 0 AND NOT p.proretset
                AND NOT EXISTS (SELECT FROM unnest(p.proargtypes) t JOIN pg_type y ON y.oid = t WHERE y.typtype = 'p')) f
            WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.prokind = 'f' AND p.proname = ANY (names) LOOP
    EXECUTE format('CREATE OR REPLACE FUNCTION public.%I(%s) RETURNS boolean LANGUAGE plpgsql AS %L', it.name, it.arguments,
                   format('BEGIN RAISE EXCEPTION %L; END', format('planted function %s(%s)', it.name, it.arguments)));
  END LOOP;
END
$$;
"""


def plant(database):
    text = PLANT.replace("{types}", array_of(TYPES)).replace("{few}", array_of(FEW)).replace("{every}", str(LONG))
    text = text.replace("{names}", "ARRAY[" + ", ".join(f"'{name}'" for name in called()) + "]")
    subprocess.run(["psql", in_database(POSTGRES, database), "-qXv", "ON_ERROR_STOP=1"], input=text, check=True, text=True,
                   env=os.environ | {"PGOPTIONS": SANE})


@functools.cache
def planted_database():
    """Planting takes longer than a test, so it is done once."""
    name = "cli_planted_" + uuid.uuid4().hex[:12]
    create_database(POSTGRES, name)
    unittest.addModuleCleanup(drop_database_later, POSTGRES, name)
    plant(name)
    return name


class Planted(EveryVerb):
    @classmethod
    def template(cls):
        return planted_database()

    def setUp(self):
        super().setUp()
        # So many functions and operators make the estimates for queries of the catalog so high that
        # most of the time would be spent on compiling them.
        self.sql(f"ALTER DATABASE {self.database} SET jit = off")

    def is_called(self, expression):
        run = subprocess.run(["psql", self.store, "-qXAtc", f"SELECT {expression}"], check=False, capture_output=True, text=True)
        return "planted" in run.stderr

    def test_in_the_usual_search_path(self):
        for expression in ("1::oid = 'pg_class'::regclass", "quote_ident('a'::name)", "format_type(1::bigint, 2::bigint)"):
            self.assertTrue(self.is_called(expression), expression)
        self.assertFalse(self.is_called("1 = 2"))
        self.every_verb()

    @unittest.skipUnless(POOLER, "OUTBOX_TEST_PGBOUNCER is not set: no PgBouncer")
    def test_behind_a_pooler_that_shares_sessions(self):
        """A search path of their own would be everybody's: statements that leave nothing to choose protect these."""
        self.store = self.at_database(POOLER)
        self.every_verb()

    def test_before_the_server_s_own(self):
        self.sql(f"ALTER DATABASE {self.database} SET search_path = public, pg_catalog")
        for expression in ("1 = 2", "octet_length('a'::pg_catalog.text)"):
            self.assertTrue(self.is_called(expression), expression)
        self.every_verb()

    def test_the_demo(self):
        self.succeeds("--seconds", "2", "--kills", "0", "--store", self.store, "--json", program=DEMO)


if __name__ == "__main__":
    unittest.main()
