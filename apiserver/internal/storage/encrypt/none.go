package encrypt

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
)

// None stores values as they are, where there is no configuration.
type None struct{}

// Seal returns plain.
func (None) Seal(_ context.Context, _ string, plain []byte) ([]byte, error) { return plain, nil }

// Open returns stored, unless it was sealed while there was a configuration.
func (None) Open(_ context.Context, _ string, stored []byte) (plain []byte, stale bool, err error) {
	if bytes.HasPrefix(stored, []byte(sealedPrefix)) {
		return nil, false, fmt.Errorf("decrypt: the value was sealed with: %s, and there is no encryption configuration "+
			"(--encryption-provider-config)", keyOf(stored))
	}
	return stored, false, nil
}

// keyOf is the prefix of a sealed value that names its key, k8s:enc:KIND:VERSION:NAME, so that
// somebody can look for it; of other values it shows no more than that they are sealed.
func keyOf(stored []byte) string {
	const longest = 300
	fields := bytes.SplitN(stored[:min(len(stored), longest)], []byte(":"), 6)
	if len(fields) < 6 {
		return sealedPrefix + "…"
	}
	return strconv.Quote(string(bytes.Join(fields[:5], []byte(":"))))
}
