package operation

import (
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/config"
	"kctl/apiserver/internal/resources/networking"
	"kctl/apiserver/internal/storage/etcd/etcdtest"
	"kctl/proto/core"
)

// TestTwoServersGiveOfAllRanges: as many services as two ranges have addresses
// get one each, whichever of two servers is asked.
func TestTwoServersGiveOfAllRanges(t *testing.T) {
	t.Parallel()
	_, etcd := etcdtest.StartIn(t, filepath.Join(t.TempDir(), "e"))
	address := forwarded(t, etcd.Socket)
	adjust := func(o *config.Options) {
		o.EtcdServers, o.ServiceClusterIPRange = []string{"http://" + address}, "10.0.0.0/28"
	}
	servers := [2]*cluster{start(t, adjust), start(t, adjust)}
	servers[0].Must(servers[0].Root().Resource(networking.ServiceCIDRResource, "").Create(t.Context(), &networkingv1.ServiceCIDR{
		ObjectMeta: metav1.ObjectMeta{Name: "more"}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{"10.1.0.0/28"}},
	}, nil))
	service := func(c *cluster, name string) (string, error) {
		var s corev1.Service
		err := c.Root().Resource(core.Services, "default").Create(t.Context(), &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
		}, &s)
		return s.Spec.ClusterIP, err
	}
	const all = 2*14 - 1 // one belongs to service kubernetes
	given := make([]string, all)
	var wait sync.WaitGroup
	for i := range all {
		wait.Go(func() {
			ip, err := service(servers[i%2], fmt.Sprint("s", i))
			if err != nil {
				t.Error(err)
			}
			given[i] = ip
		})
	}
	wait.Wait()
	first := given[0]
	slices.Sort(given)
	if n := len(slices.Compact(given)); n != all || given[0] < "10.0.0." || given[all-1] < "10.1.0." {
		t.Errorf("%d services have %v", all, given)
	}
	if ip, err := service(servers[1], "late"); !apierrors.IsInternalError(err) {
		t.Errorf("one more has %q: %v", ip, err)
	}
	servers[1].Must(servers[1].Root().Resource(core.Services, "default").Delete(t.Context(), "s0", nil, nil))
	if ip, err := service(servers[0], "late"); err != nil || ip != first {
		t.Errorf("%s was given back, another service got %q: %v", first, ip, err)
	}
}
