package cluster

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"google.golang.org/protobuf/encoding/protowire"
)

// runtimeService makes kctl's calls to a container runtime: a few of the
// Container Runtime Interface, v1, encoded by hand as gRPC over HTTP/2 (gRPC
// over HTTP2, "Requests", "Responses"). The libraries for all of it would add 2
// MB to kctl.
type runtimeService struct{ client *http.Client }

// sandbox is the part of a PodSandbox that is read.
type sandbox struct{ id, namespace, name string }

// runtime is the client of the cluster's containerd. Connections are made with
// each call's first use; close ends them.
func (l Layout) runtime() *runtimeService { return runtimeAt(l.Socket()) }

func runtimeAt(socket string) *runtimeService {
	protocols := &http.Protocols{}
	protocols.SetUnencryptedHTTP2(true)
	return &runtimeService{&http.Client{Transport: &http.Transport{
		Protocols: protocols,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
	}}}
}

func (r *runtimeService) close() { r.client.CloseIdleConnections() }

// errNotReady: the runtime answers, but can't run pods yet.
var errNotReady = errors.New("container runtime")

// maxAnswer bounds the bytes read of an answer: a sandbox takes some hundred.
const maxAnswer = 64 << 20

// frameHeaderSize is a byte that says whether a message is compressed, and its length.
const frameHeaderSize = 5

// call makes a call with an encoded message, and returns that of the answer.
func (r *runtimeService) call(ctx context.Context, method string, message []byte) ([]byte, error) {
	frame := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message)))
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://containerd/runtime.v1.RuntimeService/"+method,
		bytes.NewReader(append(frame, message...)))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/grpc")
	request.Header.Set("Te", "trailers")
	response, err := r.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", method, errors.Unwrap(err)) // without the URL, which is made up
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	code, reason := response.Trailer.Get("Grpc-Status"), response.Trailer.Get("Grpc-Message")
	if code == "" { // an answer of headers alone
		code, reason = response.Header.Get("Grpc-Status"), response.Header.Get("Grpc-Message")
	}
	if code != "0" {
		return nil, fmt.Errorf("%s: %s (%s, code %s)", method, reason, response.Status, code)
	}
	if len(answer) < frameHeaderSize || answer[0] != 0 {
		return nil, fmt.Errorf("%s: the answer is not a valid message", method)
	}
	return answer[frameHeaderSize:], nil
}

func (r *runtimeService) version(ctx context.Context) error {
	_, err := r.call(ctx, "Version", nil)
	return err
}

// notReady says which of CRI's conditions are false. Runtimes have more of
// their own: containerd 2.2 warns about an old kernel interface with one.
func (r *runtimeService) notReady(ctx context.Context) error {
	answer, err := r.call(ctx, "Status", nil)
	if err != nil {
		return err
	}
	return scanMessages(answer, 1, func(status []byte) error { // StatusResponse.status
		return scanMessages(status, 1, checkCondition) // RuntimeStatus.conditions
	})
}

// checkCondition returns an error for one of CRI's conditions that is false.
func checkCondition(condition []byte) error {
	met := false
	words := map[protowire.Number]string{} // type 1, reason 3, message 4
	err := scanFields(condition, func(number protowire.Number, varint uint64, text []byte) error {
		met = met || number == 2 && varint != 0
		words[number] = string(text)
		return nil
	})
	if err == nil && !met && (words[1] == "RuntimeReady" || words[1] == "NetworkReady") {
		err = fmt.Errorf("%w: %s is false: %s %s", errNotReady, words[1], words[3], words[4])
	}
	return err
}

// RuntimeNetwork is where a container runtime looks for the pods' network:
// directories of plugins, and one of configurations.
type RuntimeNetwork struct {
	Plugins []string
	Config  string
}

// network reads the runtime's verbose status, where containerd reports it. For
// other runtimes nothing is known.
func (r *runtimeService) network(ctx context.Context) (RuntimeNetwork, error) {
	verbose := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 1) // StatusRequest.verbose
	answer, err := r.call(ctx, "Status", verbose)
	if err != nil {
		return RuntimeNetwork{}, err
	}
	var told struct {
		CNI struct {
			BinDir  string   `json:"binDir"`
			BinDirs []string `json:"binDirs"` // containerd 2
			ConfDir string   `json:"confDir"`
		} `json:"cni"`
	}
	err = scanMessages(answer, 2, func(entry []byte) error { // StatusResponse.info
		words := map[protowire.Number][]byte{} // key 1, value 2
		err := scanFields(entry, func(number protowire.Number, _ uint64, text []byte) error {
			words[number] = text
			return nil
		})
		if err == nil && string(words[1]) == "config" {
			_ = json.Unmarshal(words[2], &told) // what another runtime has there is not for us
		}
		return err
	})
	network := RuntimeNetwork{Plugins: told.CNI.BinDirs, Config: told.CNI.ConfDir}
	if told.CNI.BinDir != "" {
		network.Plugins = append(network.Plugins, told.CNI.BinDir)
	}
	return network, err
}

func (r *runtimeService) sandboxes(ctx context.Context) ([]sandbox, error) {
	answer, err := r.call(ctx, "ListPodSandbox", nil)
	if err != nil {
		return nil, err
	}
	var all []sandbox
	err = scanMessages(answer, 1, func(item []byte) error { // ListPodSandboxResponse.items
		all = append(all, sandbox{})
		last := &all[len(all)-1]
		return scanFields(item, func(number protowire.Number, _ uint64, content []byte) error {
			switch number {
			case 1:
				last.id = string(content)
			case 2:
				return last.readMetadata(content)
			}
			return nil
		})
	})
	return all, err
}

// readMetadata reads a PodSandboxMetadata.
func (s *sandbox) readMetadata(message []byte) error {
	return scanFields(message, func(number protowire.Number, _ uint64, text []byte) error {
		switch number {
		case 1:
			s.name = string(text)
		case 3:
			s.namespace = string(text)
		}
		return nil
	})
}

// endSandbox calls StopPodSandbox or RemovePodSandbox, whose requests look the same.
func (r *runtimeService) endSandbox(ctx context.Context, method, id string) error {
	_, err := r.call(ctx, method, protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), id))
	return err
}

var errMalformed = errors.New("the runtime's answer is garbled")

// scanFields goes through the fields of an encoded message.
func scanFields(message []byte, each func(number protowire.Number, varint uint64, content []byte) error) error {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return errMalformed
		}
		message = message[n:]
		var varint uint64
		var content []byte
		switch kind {
		case protowire.VarintType:
			varint, n = protowire.ConsumeVarint(message)
		case protowire.BytesType:
			content, n = protowire.ConsumeBytes(message)
		default:
			n = protowire.ConsumeFieldValue(number, kind, message)
		}
		if n < 0 {
			return errMalformed
		}
		message = message[n:]
		if err := each(number, varint, content); err != nil {
			return err
		}
	}
	return nil
}

// scanMessages goes through the messages in one field.
func scanMessages(message []byte, wanted protowire.Number, each func([]byte) error) error {
	return scanFields(message, func(number protowire.Number, _ uint64, content []byte) error {
		if number != wanted {
			return nil
		}
		return each(content)
	})
}
