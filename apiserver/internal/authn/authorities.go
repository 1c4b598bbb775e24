package authn

import (
	"encoding/pem"
	"slices"
)

// Overlap reports whether two PEM files have a certificate in common.
func Overlap(a, b []byte) bool {
	in := map[string]bool{}
	for _, der := range certificates(a) {
		in[string(der)] = true
	}
	return slices.ContainsFunc(certificates(b), func(der []byte) bool { return in[string(der)] })
}

func certificates(data []byte) (ders [][]byte) {
	for {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			return ders
		}
		if block.Type == "CERTIFICATE" {
			ders = append(ders, block.Bytes)
		}
	}
}
