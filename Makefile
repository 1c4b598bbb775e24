# The whole project in a few words; README.md says what they do.

MODULES := proto apiserver scheduler kubelet kubectl test
BIN     := bin
DIR     ?= /var/lib/kctl
PORT    ?= 6443

# What is installed by `make install`: below DESTDIR, for the machine's PREFIX.
PREFIX ?= /usr/local
PARTS  ?= kctl kctl-control-plane kctl-node
# The release that `make packages` makes; the source says which it is.
VERSION ?= $(shell sed -n 's/^var Number = "\(.*\)"/\1/p' proto/release/release.go)

# nomsgpack: gin without an encoding that the API does not speak; 6 MB of each binary.
GO_BUILD = CGO_ENABLED=0 go build -trimpath -tags nomsgpack,grpcnotrace -ldflags='-s -w -X kctl/proto/release.Number=$(VERSION)'

.PHONY: run down build etcd runtime upstream images install packages test test-long check bench deps test-deps clean

run: deps build
	@deploy/local/run.sh $(BIN) "$(DIR)" $(PORT)

down:
	@[ -x $(BIN)/kctl ] || { echo 'there is no $(BIN)/kctl here to do it: `make build` builds it' >&2; exit 1; }
	@$(BIN)/kctl down --dir "$(DIR)"

build:
	@deploy/local/deps.sh build
	cd apiserver && $(GO_BUILD) -o ../$(BIN)/apiserver ./cmd/apiserver
	cd scheduler && $(GO_BUILD) -o ../$(BIN)/scheduler ./cmd/scheduler
	cd kubelet   && $(GO_BUILD) -o ../$(BIN)/kubelet   ./cmd/kubelet
	cd kubectl   && $(GO_BUILD) -o ../$(BIN)/ ./cmd/kctl ./cmd/pause ./cmd/demo ./cmd/balancer ./cmd/healthcheck

# etcd and its tools, as static binaries, for the images (deploy/etcd pins them).
etcd:
	cd deploy/etcd && GOWORK=off $(GO_BUILD) -o ../../$(BIN)/etcd go.etcd.io/etcd/server/v3
	cd deploy/etcd && GOWORK=off $(GO_BUILD) -o ../../$(BIN)/ go.etcd.io/etcd/etcdctl/v3 go.etcd.io/etcd/etcdutl/v3

# A newer containerd and runc than Debian's, for the long tests (test/containerd pins them).
runtime: $(BIN)/runtime/runc

$(BIN)/runtime/runc: test/containerd/go.mod
	@deploy/local/deps.sh runtime
	cd test/containerd && GOWORK=off CGO_ENABLED=0 go build -trimpath -buildvcs=false -tags no_btrfs -ldflags='-s -w' -o ../../$(BIN)/runtime/ \
		github.com/containerd/containerd/v2/cmd/containerd github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2 github.com/containerd/containerd/v2/cmd/ctr
	cd test/containerd && GOWORK=off CGO_ENABLED=1 go build -trimpath -buildvcs=false -tags seccomp -ldflags='-s -w' -o ../../$(BIN)/runtime/ github.com/opencontainers/runc

# What runs beside us or in our place in the long tests TestServices, TestDiscovery
# and those of test/twins, which are skipped without: upstream's programs,
# metrics-server, CoreDNS and Prometheus (test/upstream pins them). And a kubectl of
# our API level, which has the words that TestSameAsKubectl skips for older ones.
upstream: $(BIN)/upstream/kube-proxy $(BIN)/upstream/kubelet $(BIN)/upstream/prometheus

$(BIN)/upstream/kube-proxy: test/upstream/go.mod
	cd test/upstream && GOWORK=off CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags='-s -w' -o ../../$(BIN)/upstream/ \
		./coredns k8s.io/kubernetes/cmd/kube-controller-manager k8s.io/kubernetes/cmd/kube-proxy sigs.k8s.io/metrics-server/cmd/metrics-server

# Our programs' twins. They tell their version only if they are told.
$(BIN)/upstream/kubelet: test/upstream/go.mod
	cd test/upstream && version=$$(GOWORK=off go list -m -f '{{.Version}}' k8s.io/kubernetes) && minor=$${version#v1.} && \
		GOWORK=off CGO_ENABLED=0 go build -trimpath -buildvcs=false -o ../../$(BIN)/upstream/ -ldflags="-s -w -X k8s.io/component-base/version.gitVersion=$$version \
		-X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=$${minor%%.*}" \
		k8s.io/kubernetes/cmd/kube-apiserver k8s.io/kubernetes/cmd/kube-scheduler k8s.io/kubernetes/cmd/kubectl k8s.io/kubernetes/cmd/kubelet

$(BIN)/upstream/prometheus: test/upstream/prometheus.sh
	test/upstream/prometheus.sh $(CURDIR)/$(BIN)/upstream/prometheus

# Archives that container engines load: build/images/NAME.tar
images: build etcd
	$(BIN)/kctl images --dir build/images

# Programs, units, users and settings; docs/install.md goes on from there. PARTS=kctl-etcd needs `make etcd`.
install: build
	@deploy/packages/install.sh $(BIN) "$(DESTDIR)" $(PREFIX) $(PARTS)

# Debian packages: build/packages/NAME_VERSION_ARCHITECTURE.deb
packages: build etcd
	@deploy/packages/build.sh $(BIN) $(VERSION) build/packages

# The kubelet's come early: while they wait for containers, the largest module is compiled.
test: test-deps build etcd
	@KCTL_BIN=$(CURDIR)/$(BIN) deploy/local/test.sh proto kubelet $(filter-out proto kubelet,$(MODULES))

# What takes longer than a test run should.
test-long: test-deps build images runtime
	@deploy/local/deps.sh long
	cd kubelet && KCTL_LONG=1 go test -race -count=1 -timeout 60m -run 'Churn|ThreeHundred|ManyContainers|AFullDisk|AFaultyRuntime' ./internal/kubelet
	cd kubelet && PATH=$(CURDIR)/$(BIN)/runtime:$$PATH go test -race -p 1 -count=1 -timeout 30m ./internal/cri ./internal/podruntime ./internal/probe ./internal/server ./internal/volume ./internal/kubelet
	cd test && PATH=$(CURDIR)/$(BIN)/runtime:$$PATH KCTL_BIN=$(CURDIR)/$(BIN) go test -race -count=1 -timeout 20m ./conformance
	cd test && KCTL_BIN=$(CURDIR)/$(BIN) KCTL_LONG=1 go test -race -p 1 -count=1 -timeout 90m ./...

# Every module by itself, as if it were its own repository.
check:
	@deploy/local/check.sh $(MODULES)

# Every figure beside its floor, in one run.
bench: test-deps build
	@cd apiserver && go test -run '^$$' -bench . -benchtime 2s ./...
	@cd scheduler && go test -run '^$$' -bench . -benchtime 2s ./...
	@cd test && KCTL_BIN=$(CURDIR)/$(BIN) go test -run '^$$' -bench . -benchtime 1x -timeout 20m ./...

deps:
	@deploy/local/deps.sh run

test-deps:
	@deploy/local/deps.sh run test

clean:
	rm -rf $(BIN) build
