package projected

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"kctl/kubelet/internal/volume/atomic"
	"kctl/kubelet/internal/volume/keys"
)

// TrustBundles reads the certificates of cluster trust bundles, as they are
// stored; errors are the API's.
type TrustBundles interface {
	TrustBundle(ctx context.Context, name string) (string, error)
	// TrustBundlesOf are those of a signer that a selector matches.
	TrustBundlesOf(ctx context.Context, signer string, selector labels.Selector) ([]string, error)
}

// trustBundle is one file with every certificate that the source selects.
func trustBundle(ctx context.Context, get TrustBundles, source *corev1.ClusterTrustBundleProjection,
	d keys.Defaults) (atomic.Payload, error) {
	bundles, err := selectBundles(ctx, get, source)
	if err != nil {
		return nil, err
	}
	if len(bundles) == 0 && !ptr.Deref(source.Optional, false) {
		if source.Name != nil {
			return nil, fmt.Errorf("clustertrustbundle %q not found", *source.Name)
		}
		return nil, fmt.Errorf("no clustertrustbundle of signer %q matches %q",
			*source.SignerName, metav1.FormatLabelSelector(source.LabelSelector))
	}
	return atomic.Payload{source.Path: d.File(certificates(bundles), nil, nil)}, nil
}

func selectBundles(ctx context.Context, get TrustBundles, source *corev1.ClusterTrustBundleProjection) ([]string, error) {
	switch {
	case source.Name != nil:
		bundle, err := get.TrustBundle(ctx, *source.Name)
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return []string{bundle}, err
	case source.SignerName == nil:
		return nil, fmt.Errorf("clusterTrustBundle source %q has neither a bundle nor a signer", source.Path)
	}
	selector, err := metav1.LabelSelectorAsSelector(source.LabelSelector) // of nil: nothing
	if err != nil {
		return nil, err
	}
	return get.TrustBundlesOf(ctx, *source.SignerName, selector)
}

// certificates are the blocks of all bundles, each once, in an order that is
// independent of the bundles' order: the file changes only when they do.
// Comments and headers are left out.
func certificates(bundles []string) []byte {
	var blocks [][]byte
	for _, bundle := range bundles {
		for block, rest := pem.Decode([]byte(bundle)); block != nil; block, rest = pem.Decode(rest) {
			blocks = append(blocks, pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes}))
		}
	}
	slices.SortFunc(blocks, bytes.Compare)
	return bytes.Join(slices.CompactFunc(blocks, bytes.Equal), nil)
}
