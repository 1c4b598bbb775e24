package clientauth

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/apis/asn1"
)

// ExtraCredentialID is the extra field of a user that names the credential that was shown, so that what
// was done with it is found in the audit log (KEP-2799).
const ExtraCredentialID = "authentication.kubernetes.io/credential-id"

// UserOf is the user whom a certificate names: the common name is the user, organizations
// are groups, and an attribute of Kubernetes' own is the uid.
func UserOf(leaf *x509.Certificate, sum [sha256.Size]byte) (*authenticationv1.UserInfo, error) {
	if leaf.Subject.CommonName == "" {
		return nil, errors.New("client certificate: it has no common name to use as the user's name")
	}
	uid, err := uidOf(leaf)
	if err != nil {
		return nil, fmt.Errorf("client certificate of %q: %w", leaf.Subject.CommonName, err)
	}
	return &authenticationv1.UserInfo{
		Username: leaf.Subject.CommonName,
		UID:      uid,
		Groups:   leaf.Subject.Organization,
		Extra:    map[string]authenticationv1.ExtraValue{ExtraCredentialID: {"X509SHA256=" + hex.EncodeToString(sum[:])}},
	}, nil
}

// uidOf is empty if the subject has none (gate AllowParsingUserUIDFromCertAuth). More than
// one is nobody's.
func uidOf(leaf *x509.Certificate) (string, error) {
	var uids []string
	for _, attribute := range leaf.Subject.Names {
		if !attribute.Type.Equal(asn1.X509UID()) {
			continue
		}
		uid, _ := attribute.Value.(string) // Go's parser lets nothing else pass
		if uid == "" {
			return "", errors.New("its uid must not be empty")
		}
		uids = append(uids, uid)
	}
	switch len(uids) {
	case 0:
		return "", nil
	case 1:
		return uids[0], nil
	}
	return "", fmt.Errorf("it has %d uids, at most one is allowed", len(uids))
}
