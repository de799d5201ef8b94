package orders;

import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.time.Duration;
import java.time.Instant;
import java.util.Base64;
import java.util.List;
import java.util.function.UnaryOperator;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/** Is a wake from Stationmaster, and is it fresh? By Standard Webhooks, with nothing but the JDK. */
final class Webhook {

    /** An older one may be a repeat by somebody who listened. */
    private static final Duration TOLERANCE = Duration.ofMinutes(5);

    /** Why a wake is not to be believed. */
    static final class Untrusted extends Exception {
        Untrusted(String why) {
            super(why);
        }
    }

    /** {@code whsec_} and base64, as {@code stationmaster alarms secrets show} prints it. */
    static byte[] decodeSecret(String secret) {
        if (!secret.startsWith("whsec_")) {
            throw new IllegalArgumentException("a secret looks like whsec_ and base64");
        }
        return Base64.getDecoder().decode(secret.substring("whsec_".length()));
    }

    /**
     * Answers the id of the wake, which is the same in every try.
     *
     * @param header gives the value of a header, or null
     * @param body the bytes that came: parsed and written anew, they would be others
     */
    static String verify(List<byte[]> secrets, UnaryOperator<String> header, byte[] body) throws Untrusted {
        String id = header.apply("webhook-id");
        String sent = header.apply("webhook-timestamp");
        String signatures = header.apply("webhook-signature");
        if (id == null || signatures == null || sent == null || !sent.matches("[0-9]{1,12}")) {
            throw new Untrusted("a header is missing or cannot be read");
        }
        Instant sentAt = Instant.ofEpochSecond(Long.parseLong(sent));
        if (Duration.between(sentAt, Instant.now()).abs().compareTo(TOLERANCE) > 0) {
            throw new Untrusted("the timestamp is too far from now");
        }
        // While a secret is exchanged there are several signatures, and here perhaps several secrets: one that fits will do.
        for (byte[] secret : secrets) {
            byte[] expected = ("v1," + Base64.getEncoder().encodeToString(sign(secret, id, sent, body)))
                    .getBytes(StandardCharsets.UTF_8);
            for (String signature : signatures.split(" ")) {
                // In constant time, which equals is not.
                if (MessageDigest.isEqual(expected, signature.getBytes(StandardCharsets.UTF_8))) {
                    return id;
                }
            }
        }
        throw new Untrusted("no signature is by a secret that is known here");
    }

    private static byte[] sign(byte[] secret, String id, String sent, byte[] body) {
        try {
            Mac mac = Mac.getInstance("HmacSHA256");
            mac.init(new SecretKeySpec(secret, "HmacSHA256"));
            mac.update((id + "." + sent + ".").getBytes(StandardCharsets.UTF_8));
            return mac.doFinal(body);
        } catch (GeneralSecurityException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    private Webhook() {}
}
