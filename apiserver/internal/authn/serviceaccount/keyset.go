package serviceaccount

import (
	"crypto/ecdsa"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
)

// Paths of the documents with which other programs can check tokens without
// asking this server about each (OpenID Connect Discovery 1.0).
const (
	ConfigurationPath = "/.well-known/openid-configuration"
	KeySetPath        = "/openid/v1/jwks"
)

// Documents are the two discovery documents, encoded.
type Documents struct{ Configuration, KeySet []byte }

// NewDocuments describes an issuer and its keys. keySetURI is the URI under which
// these are found: "https://192.0.2.1:6443" and KeySetPath.
func NewDocuments(issuer, keySetURI string, keys []PublicKey) (*Documents, error) {
	set := struct {
		Keys []webKey `json:"keys"`
	}{Keys: []webKey{}}
	var algorithms []string
	seen := map[string]bool{}
	for _, key := range keys {
		method, err := methodOf(key.Key)
		if err != nil {
			return nil, err
		}
		web, err := webKeyOf(key, method.Alg())
		if err != nil {
			return nil, err
		}
		if !seen[key.ID] {
			set.Keys = append(set.Keys, web)
		}
		if !seen[web.Algorithm] {
			algorithms = append(algorithms, web.Algorithm)
		}
		seen[key.ID], seen[web.Algorithm] = true, true
	}
	configuration, err := json.Marshal(map[string]any{
		"issuer": issuer, "jwks_uri": keySetURI,
		"response_types_supported": []string{"id_token"}, "subject_types_supported": []string{"public"},
		"id_token_signing_alg_values_supported": algorithms,
	})
	if err != nil {
		return nil, fmt.Errorf("encode issuer configuration: %w", err)
	}
	keySet, err := json.Marshal(set)
	if err != nil {
		return nil, fmt.Errorf("encode key set: %w", err)
	}
	return &Documents{Configuration: configuration, KeySet: keySet}, nil
}

// webKey is a public key as RFC 7517 writes it.
type webKey struct {
	Use       string `json:"use"`
	Type      string `json:"kty"`
	ID        string `json:"kid"`
	Algorithm string `json:"alg"`
	N         string `json:"n,omitempty"`
	E         string `json:"e,omitempty"`
	Curve     string `json:"crv,omitempty"`
	X         string `json:"x,omitempty"`
	Y         string `json:"y,omitempty"`
}

func webKeyOf(key PublicKey, algorithm string) (webKey, error) {
	out := webKey{Use: "sig", ID: key.ID, Algorithm: algorithm}
	text := base64.RawURLEncoding.EncodeToString
	switch k := key.Key.(type) {
	case *rsa.PublicKey:
		out.Type, out.N, out.E = "RSA", text(k.N.Bytes()), text(big.NewInt(int64(k.E)).Bytes())
	case *ecdsa.PublicKey:
		point, err := k.Bytes() // 4, x, y: both as long as the curve's order
		if err != nil {
			return out, fmt.Errorf("encode public key: %w", err)
		}
		half := (len(point) - 1) / 2
		out.Type, out.Curve = "EC", k.Curve.Params().Name
		out.X, out.Y = text(point[1:1+half]), text(point[1+half:])
	default:
		return out, fmt.Errorf("keys of type %T are not supported", key.Key)
	}
	return out, nil
}
