package objects

import (
	"context"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"kctl/proto/core"
	"kctl/proto/rest"
)

// Trust bundles are read each time: few pods use them, and a volume looks once
// a minute.

// TrustBundle returns the certificates of a cluster trust bundle; its error is
// the API's.
func (o *Objects) TrustBundle(ctx context.Context, name string) (string, error) {
	if o.client == nil {
		return "", errNoServer
	}
	var bundle certificatesv1.ClusterTrustBundle
	err := o.client.Resource(core.ClusterTrustBundles, "").Get(ctx, name, &bundle)
	return bundle.Spec.TrustBundle, err
}

// TrustBundlesOf returns those of a signer's bundles that selector matches.
func (o *Objects) TrustBundlesOf(ctx context.Context, signer string, selector labels.Selector) ([]string, error) {
	if o.client == nil {
		return nil, errNoServer
	}
	var list certificatesv1.ClusterTrustBundleList
	err := o.client.Resource(core.ClusterTrustBundles, "").List(ctx, &list,
		rest.FieldSelector(fields.OneTermEqualSelector("spec.signerName", signer).String()))
	if err != nil {
		return nil, err
	}
	var out []string
	for _, bundle := range list.Items {
		if selector.Matches(labels.Set(bundle.Labels)) {
			out = append(out, bundle.Spec.TrustBundle)
		}
	}
	return out, nil
}
