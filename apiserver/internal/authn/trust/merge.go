package trust

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"maps"
	"slices"
	"time"
)

// Keys of the ConfigMap's data. Lists are JSON.
const (
	keyClients  = "client-ca-file"
	keyProxies  = "requestheader-client-ca-file"
	keyNames    = "requestheader-allowed-names"
	keyUsername = "requestheader-username-headers"
	keyUID      = "requestheader-uid-headers"
	keyGroup    = "requestheader-group-headers"
	keyExtra    = "requestheader-extra-headers-prefix"
)

// mergedData returns have with this server's data added; have is not changed.
func (p *Publisher) mergedData(have map[string]string) map[string]string {
	data := maps.Clone(have)
	if data == nil {
		data = map[string]string{}
	}
	now := p.Clock.Now()
	if p.Clients != nil {
		data[keyClients] = mergeBundles(data[keyClients], p.Clients.PEM(), now)
	}
	if p.Proxies == nil {
		return data
	}
	data[keyProxies] = mergeBundles(data[keyProxies], p.Proxies.PEM(), now)
	if len(p.Headers.UID) > 0 { // others are named even if there are none
		data[keyUID] = mergeLists(data[keyUID], p.Headers.UID)
	}
	for key, values := range map[string][]string{
		keyNames: p.AllowedNames, keyUsername: p.Headers.Username,
		keyGroup: p.Headers.Group, keyExtra: p.Headers.ExtraPrefix,
	} {
		// An empty list accepts any proxy of the authority; merged with a list it
		// would accept only those listed.
		if _, there := have[key]; key == keyNames && there && (len(values) == 0 || isEmpty(have[key])) {
			data[key] = "[]"
			continue
		}
		data[key] = mergeLists(data[key], values)
	}
	return data
}

func isEmpty(list string) bool { return mergeLists(list, nil) == "[]" }

// mergeBundles adds the certificates of own that have lacks, and drops expired
// ones.
func mergeBundles(have string, own []byte, now time.Time) string {
	var out bytes.Buffer
	var seen [][]byte
	for rest := slices.Concat([]byte(have), []byte("\n"), own); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return out.String()
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil || now.After(cert.NotAfter) || slices.ContainsFunc(seen, func(der []byte) bool { return bytes.Equal(der, cert.Raw) }) {
			continue
		}
		seen = append(seen, cert.Raw)
		out.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw}))
	}
}

// mergeLists adds the values of own that have lacks. An unreadable list counts
// as empty.
func mergeLists(have string, own []string) string {
	values := []string{}
	_ = json.Unmarshal([]byte(have), &values)
	for _, value := range own {
		if !slices.Contains(values, value) {
			values = append(values, value)
		}
	}
	if len(values) == 0 {
		return "[]"
	}
	encoded, err := json.Marshal(values)
	if err != nil { // strings can always be encoded
		return "[]"
	}
	return string(encoded)
}
