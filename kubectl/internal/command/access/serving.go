package access

import (
	"context"
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"kctl/kubectl/internal/command/lookup"
	"kctl/proto/core"
	"kctl/proto/pki"
	"kctl/proto/rest"
)

// foreignNames tells which names a kubelet's request for a serving certificate asks for that
// its node has not, in words. The node's addresses are what its kubelet has said of itself, so
// that none foreign is no proof; and of a node that the user may not read nothing is said.
func foreignNames(ctx context.Context, client *rest.Client, request *unstructured.Unstructured) string {
	csr := &certificatesv1.CertificateSigningRequest{}
	if err := lookup.Typed(request, csr); err != nil || csr.Spec.SignerName != certificatesv1.KubeletServingSignerName {
		return ""
	}
	asked, err := pki.ParseRequest(csr.Spec.Request)
	if err != nil {
		return ""
	}
	name, isNode := strings.CutPrefix(asked.Subject.CommonName, core.UserNodePrefix)
	switch {
	case !isNode:
		return fmt.Sprintf("%q, which is no node's name", asked.Subject.CommonName)
	case csr.Spec.Username != asked.Subject.CommonName:
		return fmt.Sprintf("the name of node %q, and was made by %q", name, csr.Spec.Username)
	}
	node := &corev1.Node{}
	err = client.Resource(core.Nodes, "").Get(ctx, name, node)
	if err != nil && !apierrors.IsNotFound(err) {
		return ""
	}
	has := func(name string) bool {
		return slices.ContainsFunc(node.Status.Addresses, func(a corev1.NodeAddress) bool { return a.Address == name })
	}
	names := asked.DNSNames
	for _, ip := range asked.IPAddresses {
		names = append(names, ip.String())
	}
	foreign := slices.DeleteFunc(names, has)
	if len(foreign) == 0 {
		return ""
	}
	return fmt.Sprintf("%s, which node %q has not", strings.Join(foreign, ", "), name)
}
