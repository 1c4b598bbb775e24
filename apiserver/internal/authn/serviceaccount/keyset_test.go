package serviceaccount

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"slices"
	"testing"
)

func TestKeysCanBeReadBack(t *testing.T) {
	rsaPrivate, ecPrivate := rsaKey(t), ecKey(t)
	var keys []PublicKey
	for _, public := range []any{rsaPrivate.Public(), ecPrivate.Public(), ecPrivate.Public()} {
		key, err := newPublicKey(public)
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, key)
	}
	documents, err := NewDocuments(testIssuer, "https://127.0.0.1:6443"+KeySetPath, keys)
	if err != nil {
		t.Fatal(err)
	}
	var set struct{ Keys []webKey }
	if err := json.Unmarshal(documents.KeySet, &set); err != nil || len(set.Keys) != 2 {
		t.Fatalf("%s: %v", documents.KeySet, err)
	}
	number := func(text string) *big.Int {
		b, err := base64.RawURLEncoding.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		return new(big.Int).SetBytes(b)
	}
	first := &rsa.PublicKey{N: number(set.Keys[0].N), E: int(number(set.Keys[0].E).Int64())}
	if !first.Equal(rsaPrivate.Public()) || set.Keys[0].ID != keys[0].ID {
		t.Errorf("RSA key: %+v", set.Keys[0])
	}
	point := slices.Concat([]byte{4}, number(set.Keys[1].X).FillBytes(make([]byte, 32)), number(set.Keys[1].Y).FillBytes(make([]byte, 32)))
	second, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point)
	if err != nil {
		t.Fatal(err)
	}
	if !second.Equal(ecPrivate.Public()) || set.Keys[1].Curve != "P-256" {
		t.Errorf("EC key: %+v", set.Keys[1])
	}
	var configuration struct {
		Issuer     string
		Algorithms []string `json:"id_token_signing_alg_values_supported"`
	}
	if err := json.Unmarshal(documents.Configuration, &configuration); err != nil || configuration.Issuer != testIssuer || len(configuration.Algorithms) != 2 {
		t.Errorf("%s: %v", documents.Configuration, err)
	}
}
