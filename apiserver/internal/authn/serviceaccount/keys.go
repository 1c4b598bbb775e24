package serviceaccount

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"os"

	"github.com/golang-jwt/jwt/v5"
)

// PublicKey is one key that tokens may be signed with. ID is its name in a
// token's header.
type PublicKey struct {
	ID  string
	Key crypto.PublicKey
}

// LoadPublicKeys reads every key of the given PEM files. A file may hold
// several; private keys and certificates contribute their public key.
func LoadPublicKeys(files []string) ([]PublicKey, error) {
	var keys []PublicKey
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("service account key: %w", err)
		}
		found, err := parsePublicKeys(data)
		if err != nil {
			return nil, fmt.Errorf("service account key %s: %w", file, err)
		}
		keys = append(keys, found...)
	}
	return keys, nil
}

func parsePublicKeys(data []byte) ([]PublicKey, error) {
	var keys []PublicKey
	for {
		var block *pem.Block
		block, data = pem.Decode(data)
		if block == nil {
			break
		}
		public, err := publicOf(block)
		if err != nil {
			return nil, err
		}
		if public == nil {
			continue
		}
		key, err := newPublicKey(public)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, errors.New("holds no RSA or ECDSA key in PEM form")
	}
	return keys, nil
}

// publicOf returns the public key in block, or nil if the block is not a key
// (EC PARAMETERS precede EC private keys).
func publicOf(block *pem.Block) (crypto.PublicKey, error) {
	switch block.Type {
	case "PUBLIC KEY":
		return x509.ParsePKIXPublicKey(block.Bytes)
	case "RSA PUBLIC KEY":
		return x509.ParsePKCS1PublicKey(block.Bytes)
	case "CERTIFICATE":
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		return certificate.PublicKey, nil
	case "RSA PRIVATE KEY", "EC PRIVATE KEY", "PRIVATE KEY":
		signer, err := signerOf(block)
		if err != nil {
			return nil, err
		}
		return signer.Public(), nil
	}
	return nil, nil
}

func newPublicKey(public crypto.PublicKey) (PublicKey, error) {
	if _, err := methodOf(public); err != nil {
		return PublicKey{}, err
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return PublicKey{}, err
	}
	sum := sha256.Sum256(der)
	return PublicKey{ID: base64.RawURLEncoding.EncodeToString(sum[:]), Key: public}, nil
}

// LoadSigningKey reads the private key with which new tokens are signed.
func LoadSigningKey(file string) (crypto.Signer, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("service account signing key: %w", err)
	}
	for {
		var block *pem.Block
		block, data = pem.Decode(data)
		if block == nil {
			return nil, fmt.Errorf("service account signing key %s: holds no private key in PEM form", file)
		}
		signer, err := signerOf(block)
		if err != nil {
			return nil, fmt.Errorf("service account signing key %s: %w", file, err)
		}
		if signer != nil {
			return signer, nil
		}
	}
}

// signerOf returns the private key in block, or nil if it holds none.
func signerOf(block *pem.Block) (crypto.Signer, error) {
	switch block.Type {
	case "RSA PRIVATE KEY":
		return asSigner(x509.ParsePKCS1PrivateKey(block.Bytes))
	case "EC PRIVATE KEY":
		return asSigner(x509.ParseECPrivateKey(block.Bytes))
	case "PRIVATE KEY":
		key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		if err != nil {
			return nil, err
		}
		signer, ok := key.(crypto.Signer)
		if !ok {
			return nil, fmt.Errorf("%T cannot sign", key)
		}
		return signer, nil
	}
	return nil, nil
}

func asSigner[K crypto.Signer](key K, err error) (crypto.Signer, error) {
	if err != nil {
		return nil, err
	}
	return key, nil
}

// methodOf is the only signing method for a key, so that a token's header
// cannot choose another.
func methodOf(public crypto.PublicKey) (jwt.SigningMethod, error) {
	switch key := public.(type) {
	case *rsa.PublicKey:
		return jwt.SigningMethodRS256, nil
	case *ecdsa.PublicKey:
		switch key.Curve {
		case elliptic.P256():
			return jwt.SigningMethodES256, nil
		case elliptic.P384():
			return jwt.SigningMethodES384, nil
		case elliptic.P521():
			return jwt.SigningMethodES512, nil
		}
	}
	return nil, fmt.Errorf("keys of type %T are not supported, use RSA or ECDSA (P-256, P-384, P-521)", public)
}
