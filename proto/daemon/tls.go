package daemon

import (
	"crypto/tls"
	"fmt"
	"slices"
)

var tlsVersions = map[string]uint16{"VersionTLS12": tls.VersionTLS12, "VersionTLS13": tls.VersionTLS13}

// TLSVersion is what --tls-min-version says.
func TLSVersion(name string) (uint16, error) {
	version, ok := tlsVersions[name]
	if !ok {
		return 0, fmt.Errorf("--tls-min-version=%s: only VersionTLS12 and VersionTLS13 are supported", name)
	}
	return version, nil
}

// CipherSuites are what --tls-cipher-suites says; nil for Go's.
func CipherSuites(names []string) ([]uint16, error) {
	var ids []uint16
	for _, name := range names {
		i := slices.IndexFunc(tls.CipherSuites(), func(s *tls.CipherSuite) bool { return s.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("--tls-cipher-suites=%s: not supported; it is unknown or insecure", name)
		}
		ids = append(ids, tls.CipherSuites()[i].ID)
	}
	return ids, nil
}
