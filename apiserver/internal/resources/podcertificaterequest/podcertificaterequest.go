package podcertificaterequest

import (
	"context"
	"maps"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/cell"
	"kctl/apiserver/internal/resources/check"
	"kctl/apiserver/internal/resources/workload"
	"kctl/proto/core"
)

// Resource are the requests.
var Resource = core.Resource{
	Group: certificatesv1.GroupName, Version: "v1", Name: "podcertificaterequests", Kind: "PodCertificateRequest", Namespaced: true,
}

const defaultExpirationSeconds = 24 * 60 * 60

// Served are the requests.
func Served(o registry.Options) []registry.Served {
	return registry.Serve(registry.NewStore(strategy(o.Clock), o))
}

func strategy(clock clock.PassiveClock) registry.Strategy[*certificatesv1.PodCertificateRequest] {
	return registry.WithStatus(registry.Strategy[*certificatesv1.PodCertificateRequest]{
		Resource: Resource, Singular: "podcertificaterequest",
		Default: func(r *certificatesv1.PodCertificateRequest) {
			workload.DefaultTo(&r.Spec.MaxExpirationSeconds, defaultExpirationSeconds)
		},
		Create: registry.CreateStrategy[*certificatesv1.PodCertificateRequest]{
			ValidateName: check.NameIsSubdomain,
			Validate: func(_ context.Context, r *certificatesv1.PodCertificateRequest) field.ErrorList {
				return validateSpec(&r.Spec)
			},
		},
		Update: registry.UpdateStrategy[*certificatesv1.PodCertificateRequest]{
			Validate: func(_ context.Context, r, old *certificatesv1.PodCertificateRequest) field.ErrorList {
				return check.Unchanged(r.Spec, old.Spec, specPath)
			},
		},
		Status: &registry.UpdateStrategy[*certificatesv1.PodCertificateRequest]{
			KeepsMetadata: true,
			Validate: func(_ context.Context, r, old *certificatesv1.PodCertificateRequest) field.ErrorList {
				return validateStatus(r, old, clock.Now())
			},
		},
		Read: registry.ReadStrategy[*certificatesv1.PodCertificateRequest]{
			Fields: func(r *certificatesv1.PodCertificateRequest) fields.Set {
				return fields.Set{"spec.signerName": r.Spec.SignerName, "spec.podName": r.Spec.PodName, "spec.nodeName": string(r.Spec.NodeName)}
			},
			Columns: append(cell.Columns(certificatesv1.PodCertificateRequestSpec{}.SwaggerDoc(),
				"Name", "PodName=podName", "ServiceAccountName=serviceAccountName", "NodeName=nodeName", "SignerName=signerName",
			),
				cell.Text("State", "Is the request Pending, Issued, Denied, or Failed?"),
				cell.Text("UnverifiedUserAnnotations", certificatesv1.PodCertificateRequestSpec{}.SwaggerDoc()["unverifiedUserAnnotations"])),
			Row: row,
		},
	})
}

func row(r *certificatesv1.PodCertificateRequest) []any {
	state := "Pending"
	if c := outcome(&r.Status); c != nil {
		state = c.Type
	}
	var said []string
	for _, key := range slices.Sorted(maps.Keys(r.Spec.UnverifiedUserAnnotations)) {
		said = append(said, key+"="+r.Spec.UnverifiedUserAnnotations[key])
	}
	return []any{
		r.Name, r.Spec.PodName, r.Spec.ServiceAccountName, string(r.Spec.NodeName), r.Spec.SignerName, state,
		cell.OrNone(strings.Join(said, ",")),
	}
}
