// Package webhook tells whether a wake is from Stationmaster, and fresh: Standard Webhooks, with the standard library alone.
package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// An older wake may be a repeat by somebody who listened.
const tolerance = 5 * time.Minute

// Why a wake is not to be believed.
var (
	ErrHeader    = errors.New("a header is missing or cannot be read")
	ErrStale     = errors.New("the timestamp is too far from now")
	ErrSignature = errors.New("no signature is by a secret that is known here")
)

// DecodeSecret reads "whsec_" and base64, as `stationmaster alarms secrets show` prints it.
func DecodeSecret(secret string) ([]byte, error) {
	encoded, found := strings.CutPrefix(secret, "whsec_")
	key, err := base64.StdEncoding.DecodeString(encoded)
	if !found || err != nil || len(key) == 0 {
		return nil, errors.New("a secret looks like whsec_ and base64")
	}
	return key, nil
}

// Verify answers the id of the wake, which is the same in every try. The body is the bytes that came: parsed and written
// anew, they would be others.
func Verify(secrets [][]byte, header http.Header, body []byte) (string, error) {
	id, sent := header.Get("webhook-id"), header.Get("webhook-timestamp")
	seconds, err := strconv.ParseInt(sent, 10, 64)
	if id == "" || err != nil {
		return "", ErrHeader
	}
	if time.Since(time.Unix(seconds, 0)).Abs() > tolerance {
		return "", ErrStale
	}
	// While a secret is exchanged there are several signatures, and here perhaps several secrets: one that fits will do.
	for _, secret := range secrets {
		mac := hmac.New(sha256.New, secret)
		fmt.Fprintf(mac, "%s.%s.", id, sent)
		mac.Write(body)
		expected := mac.Sum(nil)
		for _, signature := range strings.Split(header.Get("webhook-signature"), " ") {
			encoded, found := strings.CutPrefix(signature, "v1,")
			given, err := base64.StdEncoding.DecodeString(encoded)
			if found && err == nil && hmac.Equal(given, expected) { // in constant time
				return id, nil
			}
		}
	}
	return "", ErrSignature
}
