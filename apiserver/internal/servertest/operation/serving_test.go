package operation

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"golang.org/x/net/http2"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/apiserver/internal/config"
	"kctl/apiserver/internal/server"
	"kctl/apiserver/internal/servertest"
	"kctl/proto/core"
)

func TestOperationalPaths(t *testing.T) {
	t.Parallel()
	c := start(t)
	for path, want := range map[string]string{
		"/healthz":                          "ok",
		"/livez":                            "ok",
		"/readyz?verbose":                   "[+]etcd ok",
		"/readyz/etcd":                      "ok",
		"/version":                          `"gitVersion": "v1.`,
		"/version/":                         `"gitVersion": "v1.`,
		"/metrics":                          "apiserver_current_inflight_requests",
		"/":                                 `"/apis/rbac.authorization.k8s.io/v1"`,
		"/openid/v1/jwks":                   `"kid"`,
		"/.well-known/openid-configuration": "https://kubernetes.default.svc.cluster.local",
		"/openapi/v2":                       "io.k8s.api.core.v1.Pod",
		"/openapi/v3/api/v1":                "io.k8s.api.core.v1.Pod",
		"/apis/coordination.k8s.io/v1/":     "leases",
	} {
		answer, text := c.Ask(http.MethodGet, path, nil, nil)
		text = bytes.ReplaceAll(text, []byte(`":"v1.`), []byte(`": "v1.`))
		if answer.StatusCode != http.StatusOK || !strings.Contains(string(text), want) {
			t.Errorf("%s: %d %.300s", path, answer.StatusCode, text)
		}
		if answer.ProtoMajor != 2 || answer.TLS.Version < tls.VersionTLS12 || answer.Header.Get("Audit-Id") == "" {
			t.Errorf("%s: %s, TLS %x, header %v", path, answer.Proto, answer.TLS.Version, answer.Header)
		}
	}
	if _, text := c.Ask(http.MethodGet, "/metrics/slis", nil, nil); !strings.Contains(string(text), `kubernetes_healthcheck{name="etcd",type="readyz"} 1`) {
		t.Errorf("the checks are: %s", text)
	}
	answer, text := c.Ask(http.MethodGet, "/apis", http.Header{"Accept": {"application/yaml, */*"}}, nil)
	if !strings.HasPrefix(string(text), "apiVersion: v1\ngroups:\n") || answer.Header.Get("Content-Type") != "application/yaml" {
		t.Errorf("groups in YAML: %s %.200s", answer.Header, text)
	}
}

func TestMetricsCountRequests(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.Must(c.Root().Resource(core.Pods, "default").List(t.Context(), &corev1.PodList{}))
	for _, spec := range []corev1.ServiceSpec{{Type: corev1.ServiceTypeNodePort}, {ClusterIP: "10.0.0.77"}} {
		spec.Ports = []corev1.ServicePort{{Port: 80}}
		c.Must(c.Root().Resource(core.Services, "default").Create(t.Context(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{GenerateName: "s"}, Spec: spec}, nil))
	}
	if answer, _ := c.Ask(http.MethodPost, "/api/v1/namespaces/default/services", http.Header{"Content-Type": {"application/json"}},
		[]byte(`{"metadata":{"name":"x"},"spec":{"clusterIP":"10.0.0.77","ports":[{"port":80}]}}`)); answer.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("an address that is taken: %d", answer.StatusCode)
	}
	c.Must(c.Root().Resource(core.Services, "default").List(t.Context(), &corev1.ServiceList{})) // and so are the other counters
	if answer, err := http.Get(strings.Replace(c.Address, "https", "http", 1)); err == nil {     //nolint:noctx // of a stranger
		c.Must(answer.Body.Close())
	}
	var text []byte
	c.Until("the connection without TLS to be counted", func(context.Context) bool {
		_, text = c.Ask(http.MethodGet, "/metrics", nil, nil)
		return strings.Contains(string(text), "\napiserver_tls_handshake_errors_total 1\n")
	})
	for _, want := range []string{
		`apiserver_storage_size_bytes{storage_cluster_id="etcd-0"} `,
		`kubernetes_feature_enabled{name="APIServerIdentity",stage="BETA"} 1`,
		`version_info{binary="1.37",component="kube",emulation="1.37",min_compat="1.36"} 1`,
		`pod_security_exemptions_total{request_operation="create",resource="pod",subresource=""} 0`,
		`apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="pods",scope="namespace",subresource="",verb="LIST",version="v1"} 1`,
		`apiserver_request_duration_seconds_count{`,
		`etcd_request_duration_seconds_count{group="",operation="create",resource="namespaces"}`,
		`authentication_attempts{result="success"}`,
		`apiserver_client_certificate_expiration_seconds_bucket{le="0"} 0`,
		`apiserver_resource_objects{group="",resource="services"} 3`,
		`apiserver_storage_objects{resource="deployments.apps"} 0`,
		`apiserver_watch_cache_initializations_total{group="",resource="services"} 1`,
		`apiserver_watch_cache_events_received_total{group="",resource="services"} `,
		`apiserver_watch_cache_events_dispatched_total{group="apps",resource="deployments"} 0`,
		`apiserver_watch_cache_resource_version{group="",resource="services"} `,
		`watch_cache_capacity{group="apps",resource="deployments"} 0`,
		`apiserver_cache_list_total{group="",resource="pods"} `,
		`apiserver_storage_list_total{group="",index="",resource="pods",storage="watchcache"} `,
		`apiserver_storage_list_fetched_objects_total{group="",index="",resource="services",storage="etcd"} `,
		`apiserver_storage_list_evaluated_objects_total{group="",resource="services",storage="watchcache"} 0`,
		`apiserver_storage_list_returned_objects_total{group="apps",resource="deployments",storage="etcd"} 0`,
		`apiserver_request_body_size_bytes_bucket{group="",resource="services",verb="create",le="50000"} `,
		`authenticated_user_requests{username="other"} `,
		`apiserver_cache_list_fetched_objects_total{group="",resource="pods"} 0`,
		`apiserver_cache_list_returned_objects_total{group="",resource="pods"} 0`,
		`go_sched_latencies_seconds_bucket`,
		`kube_apiserver_clusterip_allocator_allocated_ips{cidr="10.0.0.0/24"} 3`,
		`kube_apiserver_clusterip_allocator_available_ips{cidr="10.0.0.0/24"} 251`,
		`kube_apiserver_clusterip_allocator_allocation_total{cidr="10.0.0.0/24",scope="dynamic"} 1`,
		`kube_apiserver_clusterip_allocator_allocation_total{cidr="10.0.0.0/24",scope="static"} 2`, // one is kubernetes'
		`kube_apiserver_clusterip_allocator_allocation_errors_total{cidr="10.0.0.0/24",scope="static"} 1`,
		`kube_apiserver_nodeport_allocator_allocated_ports 1`,
		`kube_apiserver_nodeport_allocator_available_ports 2767`,
		`kube_apiserver_nodeport_allocator_allocation_total{scope="dynamic"} 1`,
		`process_resident_memory_bytes`,
		`etcd_mvcc_db_total_size_in_bytes`, // from the embedded etcd
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s", want)
		}
	}
}

func TestWhatIsNotServed(t *testing.T) {
	t.Parallel()
	c := start(t)
	tests := []struct {
		method, path string
		code         int
		reason       metav1.StatusReason
	}{
		{http.MethodGet, "/apis/apps/v1/nothings", 404, metav1.StatusReasonNotFound},
		{http.MethodGet, "/api/v1/namespaces/default/pods/web/nope", 404, metav1.StatusReasonNotFound},
		{http.MethodGet, "/api/v1/namespaces/default/pods/web", 404, metav1.StatusReasonNotFound},
		{http.MethodPut, "/api/v1/pods", 405, metav1.StatusReasonMethodNotAllowed},
		{http.MethodPost, "/version", 405, metav1.StatusReasonMethodNotAllowed},
		{http.MethodGet, "/api/v1/pods?timeout=soon", 400, metav1.StatusReasonBadRequest},
	}
	for _, test := range tests {
		answer, text := c.Ask(test.method, test.path, nil, nil)
		var status metav1.Status
		if err := json.Unmarshal(text, &status); err != nil {
			t.Errorf("%s %s: %d, not a Status: %.200s", test.method, test.path, answer.StatusCode, text)
			continue
		}
		if answer.StatusCode != test.code || status.Reason != test.reason || status.Kind != "Status" || int(status.Code) != test.code {
			t.Errorf("%s %s: %d %+v", test.method, test.path, answer.StatusCode, status)
		}
	}
}

func TestBodyLimit(t *testing.T) {
	t.Parallel()
	c := start(t, func(o *config.Options) { o.MaxRequestBodyBytes = 1024 })
	secret := &core.Secret{ObjectMeta: metav1.ObjectMeta{Name: "big"}, Data: map[string][]byte{"x": make([]byte, 2048)}}
	err := c.Root().Resource(core.Secrets, "default").Create(t.Context(), secret, nil)
	if !apierrors.IsRequestEntityTooLargeError(err) {
		t.Errorf("got %v", err)
	}
}

func TestDiscovery(t *testing.T) {
	t.Parallel()
	c := start(t)
	var list metav1.APIResourceList
	c.Must(c.Root().Do(t.Context(), http.MethodGet, "/api/v1", nil, &list))
	found := map[string]metav1.APIResource{}
	for _, r := range list.APIResources {
		found[r.Name] = r
	}
	pods := found["pods"]
	if pods.Kind != "Pod" || !pods.Namespaced || pods.SingularName != "pod" || !slices.Contains(pods.ShortNames, "po") ||
		!slices.Contains(pods.Categories, "all") || !slices.Contains(pods.Verbs, "watch") {
		t.Errorf("pods: %+v", pods)
	}
	for name, kind := range map[string]string{
		"pods/binding": "Binding", "pods/status": "Pod", "pods/eviction": "Eviction", "serviceaccounts/token": "TokenRequest",
		"namespaces/finalize": "Namespace", "bindings": "Binding",
	} {
		if found[name].Kind != kind {
			t.Errorf("%s: %+v", name, found[name])
		}
	}
	if found["pods/eviction"].Group != "policy" {
		t.Errorf("eviction is in group %q", found["pods/eviction"].Group)
	}

	header := http.Header{"Accept": {"application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"}}
	answer, text := c.Ask(http.MethodGet, "/apis", header, nil)
	var together apidiscoveryv2.APIGroupDiscoveryList
	c.Must(json.Unmarshal(text, &together))
	if !strings.Contains(answer.Header.Get("Content-Type"), "g=apidiscovery.k8s.io") || together.Kind != "APIGroupDiscoveryList" {
		t.Errorf("aggregated: %s %s", answer.Header.Get("Content-Type"), together.Kind)
	}
	var groups []string
	for _, g := range together.Items {
		groups = append(groups, g.Name)
	}
	for _, want := range []string{"authentication.k8s.io", "authorization.k8s.io", "coordination.k8s.io", "rbac.authorization.k8s.io"} {
		if !slices.Contains(groups, want) {
			t.Errorf("%s is not among %v", want, groups)
		}
	}
	header["If-None-Match"] = []string{answer.Header.Get("ETag")}
	if answer, text = c.Ask(http.MethodGet, "/apis", header, nil); answer.StatusCode != http.StatusNotModified || len(text) > 0 {
		t.Errorf("asked again: %d, %d bytes", answer.StatusCode, len(text))
	}
	_, text = c.Ask(http.MethodGet, "/apis", nil, nil)
	var plain metav1.APIGroupList
	if c.Must(json.Unmarshal(text, &plain)); plain.Kind != "APIGroupList" || len(plain.Groups) != len(groups) {
		t.Errorf("plain: %+v", plain)
	}
}

func TestRestartKeepsEverything(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := startIn(t, dir)
	c.Namespace("shop")
	c.Must(c.Stop())
	c = startIn(t, dir)
	c.Must(c.Root().Resource(core.Namespaces, "").Get(t.Context(), "shop", &core.Namespace{}))
}

func TestDrainEndsWatchesAndFinishes(t *testing.T) {
	t.Parallel()
	c := start(t)
	stream, err := c.Root().Resource(core.Pods, "").Watch(t.Context())
	c.Must(err)
	defer stream.Close()
	ended := make(chan error, 1)
	go func() {
		for {
			if _, err := stream.Next(); err != nil {
				ended <- err
				return
			}
		}
	}()
	c.Must(c.Stop())
	select {
	case <-ended:
	case <-time.After(servertest.Patience):
		t.Fatal("the watch outlived the server")
	}
	if _, err := c.Root().HTTP().Get(c.Root().URL("/healthz").String()); err == nil {
		t.Error("the server still answers")
	}
}

func TestReadyFailsWhileDraining(t *testing.T) {
	t.Parallel()
	c := start(t, func(o *config.Options) { o.ShutdownDelay = time.Second })
	client := c.Root() // connected before the drain
	done := make(chan error, 1)
	go func() { done <- c.Stop() }()
	c.Until("not ready, and still serving", func(ctx context.Context) bool {
		var status *apierrors.StatusError
		err := client.Do(ctx, http.MethodGet, "/readyz", nil, nil)
		return errors.As(err, &status) && status.ErrStatus.Code == http.StatusInternalServerError
	})
	c.Must(client.Resource(core.Pods, "").List(t.Context(), &corev1.PodList{}))
	c.Must(<-done)
}

func TestSelfSignedCertificateIsPublished(t *testing.T) {
	t.Parallel()
	c := start(t, func(o *config.Options) { o.TLSCertFile, o.TLSKeyFile, o.ClientCAFile = "", "", "" })
	made := filepath.Join(c.Options.CertDir, "apiserver.crt")
	pem, err := os.ReadFile(made)
	c.Must(err)
	c.CAFile = made
	c.Until("kube-root-ca.crt", func(ctx context.Context) bool {
		var published core.ConfigMap
		err := c.Root().Resource(core.ConfigMaps, "default").Get(ctx, core.RootCAConfigMap, &published)
		return err == nil && published.Data["ca.crt"] == string(pem)
	})
}

// TestStreamsOfOneConnection: as many as upstream allows.
func TestStreamsOfOneConnection(t *testing.T) {
	t.Parallel()
	c := start(t)
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}} // #nosec: the server's identity is not tested here
	conn, err := dialer.DialContext(t.Context(), "tcp", strings.TrimPrefix(c.Address, "https://"))
	c.Must(err)
	defer conn.Close()
	_, err = io.WriteString(conn, http2.ClientPreface)
	c.Must(err)
	framer := http2.NewFramer(conn, conn)
	c.Must(framer.WriteSettings())
	frame, err := framer.ReadFrame()
	c.Must(err)
	settings, ok := frame.(*http2.SettingsFrame)
	if !ok {
		t.Fatalf("the first frame is %v", frame)
	}
	if most, _ := settings.Value(http2.SettingMaxConcurrentStreams); most != 100 {
		t.Errorf("%d streams, want 100", most)
	}
}

func TestPortInUse(t *testing.T) {
	t.Parallel()
	c := start(t)
	o := *c.Options
	o.DataDir = t.TempDir()
	port := c.Root().URL("/").Port()
	for _, digit := range port {
		o.SecurePort = o.SecurePort*10 + int(digit-'0')
	}
	err := server.Run(t.Context(), &o, zap.NewNop())
	if err == nil || !strings.Contains(err.Error(), "listen on 127.0.0.1:"+port) {
		t.Errorf("got %v", err)
	}
}
