// Is a wake from Stationmaster, and is it fresh? By Standard Webhooks, with nothing but Node itself.

import { createHmac, timingSafeEqual } from "node:crypto";

const TOLERANCE = 5 * 60; // seconds; an older one may be a repeat by somebody who listened

export class Untrusted extends Error {}

/** `whsec_` and base64, as `stationmaster alarms secrets show` prints it. */
export function decodeSecret(secret: string): Buffer {
  if (!/^whsec_[A-Za-z0-9+/]+=*$/.test(secret)) {
    throw new Error("a secret looks like whsec_ and base64");
  }
  return Buffer.from(secret.slice("whsec_".length), "base64");
}

/**
 * Answers the id of the wake, which is the same in every try, or throws Untrusted.
 *
 * The body is the bytes that came: parsed and written anew, they would be others.
 */
export function verify(secrets: Buffer[], header: (name: string) => string | undefined, body: Buffer): string {
  const [id, sent, signatures] = ["id", "timestamp", "signature"].map((name) => header(`webhook-${name}`) ?? "");
  if (!id || !/^\d+$/.test(sent!)) {
    throw new Untrusted("a header is missing or cannot be read");
  }
  if (Math.abs(Date.now() / 1000 - Number(sent)) > TOLERANCE) {
    throw new Untrusted("the timestamp is too far from now");
  }
  // While a secret is exchanged there are several signatures, and here perhaps several secrets: one that fits will do.
  for (const secret of secrets) {
    const expected = createHmac("sha256", secret).update(`${id}.${sent}.`).update(body).digest();
    for (const signature of signatures!.split(" ")) {
      const given = Buffer.from(signature.startsWith("v1,") ? signature.slice(3) : "", "base64");
      // In constant time; it throws when the lengths differ.
      if (given.length === expected.length && timingSafeEqual(given, expected)) {
        return id;
      }
    }
  }
  throw new Untrusted("no signature is by a secret that is known here");
}
