package operators_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	managerconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"kctl/test/harness"
)

// patience only bounds failing tests.
const patience = time.Minute

// page has the commands that people type.
const page = "docs/operators.md"

// assets is the folder that the page's commands make from built programs.
func assets(t *testing.T) string {
	t.Helper()
	commands := harness.OpenPage(t, page).Take(t, "Testing operators")
	dir := t.TempDir()
	if err := os.Symlink(harness.Bin(t), filepath.Join(dir, "bin")); err != nil {
		t.Fatal(err)
	}
	shell := exec.Command("bash", "-euc", commands+`printf %s "$KUBEBUILDER_ASSETS"`)
	shell.Dir = dir
	out, err := shell.Output()
	if err != nil {
		t.Fatalf("%s: %v", page, err)
	}
	return string(out)
}

// hook is the client configuration and rules that both kinds of webhooks share;
// the environment fills in the address.
func hook(path string) (admissionregistrationv1.WebhookClientConfig, []admissionregistrationv1.RuleWithOperations) {
	return admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Name: "boats", Namespace: "default", Path: new(path)}},
		[]admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{harbour.Group}, APIVersions: []string{harbour.Version}, Resources: []string{"boats"}},
		}}
}

func webhooks() envtest.WebhookInstallOptions {
	mutating := admissionregistrationv1.MutatingWebhook{
		Name:                    "default.harbour.test",
		SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
		AdmissionReviewVersions: []string{"v1"},
	}
	mutating.ClientConfig, mutating.Rules = hook("/mutate-harbour-test-v1-boat")
	validating := admissionregistrationv1.ValidatingWebhook{
		Name:                    "even.harbour.test",
		SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
		AdmissionReviewVersions: []string{"v1"},
	}
	validating.ClientConfig, validating.Rules = hook("/validate-harbour-test-v1-boat")
	meta := metav1.ObjectMeta{Name: "boats"}
	return envtest.WebhookInstallOptions{
		MutatingWebhooks: []*admissionregistrationv1.MutatingWebhookConfiguration{{
			TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "MutatingWebhookConfiguration"},
			ObjectMeta: meta, Webhooks: []admissionregistrationv1.MutatingWebhook{mutating},
		}},
		ValidatingWebhooks: []*admissionregistrationv1.ValidatingWebhookConfiguration{{
			TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingWebhookConfiguration"},
			ObjectMeta: meta, Webhooks: []admissionregistrationv1.ValidatingWebhook{validating},
		}},
	}
}

// bench is a running test environment, with the operator running in it.
type bench struct {
	*testing.T
	environment *envtest.Environment
	scheme      *runtime.Scheme
	client.Client
}

func start(t *testing.T) *bench {
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	b := &bench{T: t, scheme: runtime.NewScheme()}
	b.must(clientgoscheme.AddToScheme(b.scheme))
	b.scheme.AddKnownTypes(harbour, &Boat{}, &BoatList{})
	metav1.AddToGroupVersion(b.scheme, harbour)
	b.environment = &envtest.Environment{
		BinaryAssetsDirectory: assets(t), Scheme: b.scheme,
		CRDs: []*apiextensionsv1.CustomResourceDefinition{definition()}, WebhookInstallOptions: webhooks(),
	}
	config, err := b.environment.Start()
	t.Cleanup(func() {
		if err := b.environment.Stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	b.must(err)
	b.Client, err = client.New(config, client.Options{Scheme: b.scheme})
	b.must(err)
	return b
}

// operate runs the operator until the test ends.
func (b *bench) operate() {
	where := b.environment.WebhookInstallOptions
	manager, err := ctrl.NewManager(b.environment.Config, ctrl.Options{
		Scheme: b.scheme, Metrics: server.Options{BindAddress: "0"},
		Controller:     managerconfig.Controller{SkipNameValidation: new(true)}, // a process may run the test twice
		LeaderElection: true, LeaderElectionID: "boats", LeaderElectionNamespace: "default", LeaderElectionReleaseOnCancel: true,
		WebhookServer: webhook.NewServer(webhook.Options{Host: where.LocalServingHost, Port: where.LocalServingPort, CertDir: where.LocalServingCertDir}),
	})
	b.must(err)
	operator := &boats{manager.GetClient()}
	b.must(ctrl.NewControllerManagedBy(manager).For(&Boat{}).Owns(&corev1.ConfigMap{}).Complete(operator))
	b.must(ctrl.NewWebhookManagedBy(manager, &Boat{}).WithDefaulter(operator).WithValidator(operator).Complete())
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	b.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			b.Errorf("the operator ended with %v", err)
		}
	})
	harness.Eventually(b, patience, func() error {
		c, err := net.Dial("tcp", net.JoinHostPort(where.LocalServingHost, fmt.Sprint(where.LocalServingPort)))
		if err != nil {
			return err
		}
		return c.Close()
	})
}

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func boat(name string, oars int) *Boat {
	return &Boat{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: BoatSpec{Oars: oars}}
}

// crewed waits until a boat's list has as many people as the boat has seats.
func (b *bench) crewed(name string, want int) {
	b.Helper()
	harness.Eventually(b, patience, func() error {
		crew, err := crewOf(b.Context(), b, name)
		got := &Boat{}
		if err := errors.Join(err, b.Get(b.Context(), client.ObjectKey{Namespace: "default", Name: name}, got)); err != nil {
			return err
		}
		if len(crew) != want || got.Status.Seats != want {
			return fmt.Errorf("%d in the crew and %d seats, want %d", len(crew), got.Status.Seats, want)
		}
		return nil
	})
}

func TestOperator(t *testing.T) {
	b := start(t)
	b.operate()
	for name, do := range map[string]func(*bench){"life": life, "users": users} {
		t.Run(name, func(t *testing.T) { do(&bench{t, b.environment, b.scheme, b.Client}) })
	}
}

// life takes a boat through everything that operators do.
func life(b *bench) {
	ctx := b.Context()
	made := boat("skiff", 0)
	b.must(b.Create(ctx, made))
	if made.Spec.Oars != 2 || made.Spec.Port != "home" {
		b.Errorf("stored with %+v, want the defaults of webhook and schema", made.Spec)
	}
	if err := b.Create(ctx, boat("coracle", 1)); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "goes round in circles") {
		b.Errorf("an odd boat: %v", err)
	}
	b.crewed("skiff", 2)

	b.must(b.Delete(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "skiff"}}))
	b.crewed("skiff", 2)

	b.must(b.Patch(ctx, made, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"oars":6}}`))))
	b.crewed("skiff", 6)
	if err := b.Patch(ctx, made, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"oars":7}}`))); !apierrors.IsForbidden(err) {
		b.Errorf("seven oars: %v", err)
	}

	b.must(b.Delete(ctx, made))
	harness.Eventually(b, patience, func() error {
		if err := b.Get(ctx, client.ObjectKeyFromObject(made), &Boat{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the boat is still there: %v", err)
		}
		// Elsewhere kube-controller-manager does this; here it is part of the server.
		crew, err := crewOf(ctx, b, "skiff")
		if err != nil || len(crew) > 0 {
			return fmt.Errorf("its crew still waits: %v %v", crew, err)
		}
		return nil
	})
}

// users: the environment makes users with the rights that they are given, and a
// kubectl.
func users(b *bench) {
	ctx := b.Context()
	user, err := b.environment.AddUser(envtest.User{Name: "jane", Groups: []string{"rowers"}}, nil)
	b.must(err)
	jane, err := client.New(user.Config(), client.Options{Scheme: b.scheme})
	b.must(err)
	if err := jane.List(ctx, &BoatList{}, client.InNamespace("default")); !apierrors.IsForbidden(err) {
		b.Errorf("without a right: %v", err)
	}
	role := metav1.ObjectMeta{Namespace: "default", Name: "rowers"}
	b.must(b.Create(ctx, &rbacv1.Role{ObjectMeta: role, Rules: []rbacv1.PolicyRule{{APIGroups: []string{harbour.Group}, Resources: []string{"boats"},
		Verbs: []string{"list"}}}}))
	b.must(b.Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: role,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "rowers"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "rowers"}},
	}))
	harness.Eventually(b, patience, func() error { return jane.List(ctx, &BoatList{}, client.InNamespace("default")) })

	kubectl, err := user.Kubectl()
	b.must(err)
	out, errs, err := kubectl.Run("get", "boats", "-n", "default")
	b.must(err)
	said, err := io.ReadAll(errs)
	b.must(err)
	if text, err := io.ReadAll(out); err != nil || len(text) > 0 || !strings.Contains(string(said), "No resources found in default namespace.") {
		b.Errorf("kubectl said %q and %q: %v", text, said, err)
	}
}
