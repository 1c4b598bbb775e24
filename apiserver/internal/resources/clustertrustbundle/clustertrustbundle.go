// Package clustertrustbundle holds what is particular to bundles of trust
// anchors: the certificates with which pods verify those of a signer
// (Kubernetes docs, "Cluster trust bundles").
package clustertrustbundle

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/cell"
	"kctl/apiserver/internal/resources/certificatesigningrequest"
	"kctl/apiserver/internal/resources/check"
	"kctl/proto/core"
)

const (
	maxBundle = 1 << 20
	omitted   = "<value omitted>"
)

// Served are the bundles.
func Served(o registry.Options) []registry.Served {
	return registry.Serve(registry.NewStore(strategy(), o))
}

func strategy() registry.Strategy[*certificatesv1.ClusterTrustBundle] {
	return registry.Strategy[*certificatesv1.ClusterTrustBundle]{
		Resource: core.Resource{Group: certificatesv1.GroupName, Version: "v1", Name: "clustertrustbundles", Kind: "ClusterTrustBundle"},
		Singular: "clustertrustbundle",
		Create: registry.CreateStrategy[*certificatesv1.ClusterTrustBundle]{
			// The form of a name depends on the signer: see validate.
			ValidateName: func(string, bool) []string { return nil },
			Validate: func(_ context.Context, b *certificatesv1.ClusterTrustBundle) field.ErrorList {
				return validate(b)
			},
		},
		Update: registry.UpdateStrategy[*certificatesv1.ClusterTrustBundle]{
			Validate: func(_ context.Context, b, old *certificatesv1.ClusterTrustBundle) field.ErrorList {
				return append(validate(b), check.Unchanged(b.Spec.SignerName, old.Spec.SignerName, field.NewPath("spec", "signerName"))...)
			},
		},
		Read: registry.ReadStrategy[*certificatesv1.ClusterTrustBundle]{
			Fields: func(b *certificatesv1.ClusterTrustBundle) fields.Set {
				return fields.Set{"spec.signerName": b.Spec.SignerName}
			},
			Columns: []metav1.TableColumnDefinition{
				cell.Name(), cell.Text("SignerName", certificatesv1.ClusterTrustBundleSpec{}.SwaggerDoc()["signerName"]),
			},
			Row: func(b *certificatesv1.ClusterTrustBundle) []any { return []any{b.Name, cell.OrNone(b.Spec.SignerName)} },
		},
	}
}

func validate(b *certificatesv1.ClusterTrustBundle) field.ErrorList {
	signer, meta := b.Spec.SignerName, field.NewPath("metadata")
	var errs field.ErrorList
	if b.GenerateName != "" {
		errs = append(errs, check.Messages(meta.Child("generateName"), b.GenerateName, checkNameOf(signer, b.GenerateName, true))...)
	}
	errs = append(errs, check.Messages(meta.Child("name"), b.Name, checkNameOf(signer, b.Name, false))...)
	if signer != "" {
		errs = append(errs, certificatesigningrequest.ValidateSigner(signer, field.NewPath("spec", "signerName"))...)
	}
	return append(errs, validateAnchors(b.Spec.TrustBundle, field.NewPath("spec", "trustBundle"))...)
}

// CheckName returns what is wrong with the name of a requested bundle, with a
// signer or without.
func CheckName(name string) []string {
	signer := ""
	if end := strings.LastIndex(name, ":"); end >= 0 {
		signer = strings.ReplaceAll(name[:end], ":", "/")
	}
	return checkNameOf(signer, name, false)
}

// checkNameOf checks a name: a signer's bundles have its name as a prefix, others have no
// colon.
func checkNameOf(signer, name string, prefix bool) []string {
	if signer == "" {
		if strings.Contains(name, ":") {
			return []string{`ClusterTrustBundle without signer name must not have ":" in its name`}
		}
		return check.NameIsSubdomain(name, prefix)
	}
	begin := strings.ReplaceAll(signer, "/", ":") + ":"
	rest, ok := strings.CutPrefix(name, begin)
	if !ok {
		return []string{fmt.Sprintf("ClusterTrustBundle for signerName %s must be named with prefix %s", signer, begin)}
	}
	return check.NameIsSubdomain(rest, prefix)
}

// validateAnchors accepts only CA certificates, each once. Text around them is
// ignored.
func validateAnchors(bundle string, at *field.Path) field.ErrorList {
	if len(bundle) > maxBundle {
		return field.ErrorList{field.TooLong(at, omitted, maxBundle)}
	}
	var errs field.ErrorList
	wrong := func(format string, args ...any) {
		errs = append(errs, field.Invalid(at, omitted, fmt.Sprintf(format, args...)))
	}
	var anchors [][]byte
	for i, rest := 0, []byte(bundle); ; i++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		anchors = append(anchors, block.Bytes)
		if block.Type != "CERTIFICATE" {
			wrong("entry %d has bad block type: %s", i, block.Type)
			continue
		}
		if len(block.Headers) > 0 {
			wrong("entry %d has PEM block headers", i)
			continue
		}
		switch certificate, err := x509.ParseCertificate(block.Bytes); {
		case err != nil:
			wrong("entry %d does not parse as X.509", i)
		case !certificate.IsCA:
			wrong("entry %d does not have the CA bit set", i)
		}
	}
	if len(anchors) == 0 {
		wrong("at least one trust anchor must be provided")
	}
	for _, same := range duplicateAnchors(anchors) {
		wrong("duplicate trust anchor (indices %v)", same)
	}
	return errs
}

// duplicateAnchors lists the positions of repeated anchors.
func duplicateAnchors(anchors [][]byte) [][]int {
	var out [][]int
	for i, anchor := range anchors {
		equal := func(other []byte) bool { return bytes.Equal(other, anchor) }
		if slices.ContainsFunc(anchors[:i], equal) {
			continue
		}
		same := []int{i}
		for j := i + 1; j < len(anchors); j++ {
			if equal(anchors[j]) {
				same = append(same, j)
			}
		}
		if len(same) > 1 {
			out = append(out, same)
		}
	}
	return out
}
