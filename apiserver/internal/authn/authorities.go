package authn

import (
	"encoding/pem"

	"k8s.io/apimachinery/pkg/util/sets"
)

// Overlap reports whether two PEM files have a certificate in common.
func Overlap(a, b []byte) bool {
	return sets.New(certificates(a)...).HasAny(certificates(b)...)
}

func certificates(data []byte) (ders []string) {
	for {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			return ders
		}
		if block.Type == "CERTIFICATE" {
			ders = append(ders, string(block.Bytes))
		}
	}
}
