package servertest

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/proto/core"
)

// NodeAt creates a node whose kubelet is handler.
func (c *Cluster) NodeAt(name string, handler http.HandlerFunc) {
	c.T.Helper()
	kubelet := httptest.NewTLSServer(handler)
	c.T.Cleanup(kubelet.Close)
	address, port, err := net.SplitHostPort(kubelet.Listener.Addr().String())
	c.Must(err)
	number, err := strconv.Atoi(port)
	c.Must(err)
	c.Must(c.Root().Resource(core.Nodes, "").Create(c.T.Context(), &core.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: corev1.NodeStatus{
			Addresses:       []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}},
			DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: int32(number)}},
		},
	}, nil))
}
