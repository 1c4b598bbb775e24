package extensions

import "encoding/pem"

// pemOf is a certificate as files and configurations have it.
func pemOf(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
