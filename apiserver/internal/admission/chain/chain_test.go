package chain

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/utils/clock"

	"kctl/apiserver/internal/admission"
	"kctl/apiserver/internal/admission/match/equivalent"
	"kctl/apiserver/internal/authz"
	"kctl/apiserver/internal/authz/rbac"
	"kctl/apiserver/internal/config"
	"kctl/apiserver/internal/customresources"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/request"
	"kctl/apiserver/internal/resources"
	"kctl/apiserver/internal/resources/service"
	"kctl/apiserver/internal/storage/etcd/etcdtest"
	"kctl/proto/core"
)

// options are for a server on an etcd of the test's own.
func options(t *testing.T, flags *config.Options) Options {
	registryOptions := registry.Options{Storage: etcdtest.Start(t), Clock: clock.RealClock{}, Logger: zap.NewNop()}
	set := resources.New(registryOptions, time.Hour, service.Ranges{
		Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/28")}, NodePorts: utilnet.PortRange{Base: 30000, Size: 4},
	})
	run(t, set.Run)
	if err := set.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	return Options{
		Flags: flags, Resources: set, Stores: func() []registry.Resource { return nil },
		Forms:      equivalent.New(nil, customresources.New(customresources.Options{Store: set.Definitions, Registry: set.Options()})),
		Authorizer: authz.Always(authz.Allow), Rules: rbac.NewAuthorizer(),
		Metrics: prometheus.NewRegistry(), Clock: clock.RealClock{}, Logger: zap.NewNop(),
	}
}

// run runs a loop until the test ends.
func run(t *testing.T, loop func(context.Context) error) {
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- loop(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("a loop ended with %v", err)
		}
	})
}

// Before the users' policies and webhooks have been read, nothing is admitted,
// because one of them might forbid it. Afterwards, plugins act on what is
// stored.
func TestPluginsGoByWhatIsStored(t *testing.T) {
	flags := config.Defaults()
	flags.DisableAdmissionPlugins = []string{"NamespaceLifecycle", "ServiceAccount"} // neither of their kinds exists here
	o := options(t, flags)
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "ordinary"}, Value: 7, GlobalDefault: true}
	if _, err := o.Resources.PriorityClasses.Create(t.Context(), class, registry.Admission{}, &metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	pod := &core.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}
	create := func() error {
		return c.Chain.Admit(t.Context(), &admission.Attributes{
			Operation: admission.Create, Resource: core.Pods, Namespace: "default", Name: "a", Object: pod,
			Options: &metav1.CreateOptions{}, User: &request.User{Username: "somebody"},
		})
	}
	if err := create(); err == nil {
		t.Error("a pod is admitted before it is known who must be asked")
	}
	run(t, c.Run)
	for _, synced := range c.Synced() {
		<-synced
	}
	if err := create(); err != nil {
		t.Fatal(err)
	}
	if pod.Spec.Priority == nil || *pod.Spec.Priority != 7 || pod.Spec.PriorityClassName != "ordinary" {
		t.Errorf("the pod has the priority %v of the class %q", pod.Spec.Priority, pod.Spec.PriorityClassName)
	}
}

// Errors in the flags, and in the file that they name, keep the server from
// starting.
func TestRefusals(t *testing.T) {
	o := options(t, config.Defaults())
	file := filepath.Join(t.TempDir(), "admission.yaml")
	content := "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n- {name: AlwaysAdmit, configuration: {a: 1}}\n"
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, set := range map[string]func(*config.Options){
		`admission plugin "Nonsense" is not one`: func(f *config.Options) { f.EnableAdmissionPlugins = []string{"Nonsense"} },
		"both enabled and disabled": func(f *config.Options) {
			f.EnableAdmissionPlugins, f.DisableAdmissionPlugins = []string{"AlwaysDeny"}, []string{"AlwaysDeny"}
		},
		"plugin AlwaysAdmit has no configuration": func(f *config.Options) { f.AdmissionControlConfigFile = file },
		file + ".missing":                         func(f *config.Options) { f.AdmissionControlConfigFile = file + ".missing" },
	} {
		o.Flags, o.Metrics = config.Defaults(), prometheus.NewRegistry()
		set(o.Flags)
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
