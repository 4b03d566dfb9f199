package semel_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	semel "semel/client"
)

const patience = 20 * time.Second // of these tests; nothing takes as long

func program(t *testing.T) string {
	if named := os.Getenv("SEMEL_TEST_PROGRAM"); named != "" {
		return named
	}
	for _, kind := range []string{"release", "dev"} {
		path, _ := filepath.Abs("../../build/" + kind + "/tools/semel/semel")
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	t.Skip("no program semel: build it, or name it in SEMEL_TEST_PROGRAM")
	return ""
}

// node is a process of its own, whose clock the test controls.
type node struct {
	t       *testing.T
	port    string
	folder  string
	options []string
	process *exec.Cmd
}

// start also checks that the test leaves no goroutine behind.
func start(t *testing.T, options ...string) *node {
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		until(t, "goroutines end", func() bool { return runtime.NumGoroutine() <= before })
	})
	n := &node{t: t, port: "0", folder: t.TempDir(), options: options}
	n.run()
	t.Cleanup(n.kill)
	return n
}

func (n *node) run() {
	n.t.Helper()
	ready := filepath.Join(n.folder, "ready")
	_ = os.Remove(ready)
	args := append([]string{"node", "--port", n.port, "--ready-file", ready, "--test-clock",
		"--exit-with-parent", "yes"}, n.options...)
	n.process = exec.Command(program(n.t), args...)
	n.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := n.process.Start(); err != nil {
		n.t.Fatal(err)
	}
	until(n.t, "the node starts", func() bool {
		text, _ := os.ReadFile(ready)
		for _, line := range strings.Split(string(text), "\n") {
			if port, ok := strings.CutPrefix(line, "port="); ok && bytes.HasSuffix(text, []byte("\n")) {
				if n.port == "0" { // it keeps it when it is started again
					n.port = port
				}
				return true
			}
		}
		return false
	})
}

func (n *node) kill() {
	if n.process != nil {
		_ = n.process.Process.Kill()
		_ = n.process.Wait()
		n.process = nil
	}
}

func (n *node) address() string { return "127.0.0.1:" + n.port }

func (n *node) client(options ...func(*redis.Options)) *redis.Client {
	o := &redis.Options{Addr: n.address(), Protocol: 3}
	for _, each := range options {
		each(o)
	}
	rdb := redis.NewClient(o)
	n.t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

func resp2(o *redis.Options) { o.Protocol = 2 }

func (n *node) call(args ...any) any {
	n.t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: n.address(), Protocol: 2})
	defer rdb.Close()
	reply, err := rdb.Do(context.Background(), args...).Result()
	if err != nil && err != redis.Nil {
		n.t.Fatalf("%v: %v", args, err)
	}
	return reply
}

func (n *node) advance(d time.Duration) { n.call("SEMEL.CLOCK", "ADVANCE", d.Milliseconds()) }

// state is what SEMEL.GETCLAIM says.
func (n *node) state(namespace, key string) string {
	return n.call("SEMEL.GETCLAIM", namespace, key).([]any)[1].(string)
}

// calls is how often a command was called.
func (n *node) calls(command string) int {
	count := 0
	text := n.call("INFO", "commandstats").(string)
	if _, rest, ok := strings.Cut(text, "cmdstat_"+strings.ToLower(command)+":calls="); ok {
		_, _ = fmt.Sscanf(rest, "%d", &count)
	}
	return count
}

func (n *node) waiters() int {
	count := 0
	text := n.call("INFO", "clients").(string)
	if _, rest, ok := strings.Cut(text, "blocked_clients:"); ok {
		_, _ = fmt.Sscanf(rest, "%d", &count)
	}
	return count
}

func until(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !so(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			stacks := make([]byte, 1<<16)
			t.Fatalf("not so within %v: %s\n%s", patience, what, stacks[:runtime.Stack(stacks, true)])
		}
	}
}

func is(t *testing.T, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Fatalf("%v instead of %v", err, target)
	}
}

func same[T comparable](t *testing.T, found, expected T) {
	t.Helper()
	if found != expected {
		t.Fatalf("%v instead of %v", found, expected)
	}
}

func gives[T any](value T) func(context.Context, semel.Work) (T, error) {
	return func(context.Context, semel.Work) (T, error) { return value, nil }
}

func never(t *testing.T) func(context.Context, semel.Work) (string, error) {
	return func(context.Context, semel.Work) (string, error) {
		t.Error("it ran")
		return "", nil
	}
}

// proxy stands between client and node. It passes a request on and closes the connection instead
// of passing the reply, once for each cut.
type proxy struct {
	listener net.Listener
	mu       sync.Mutex
	word     string
	left     int
}

func (n *node) proxy() *proxy {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		n.t.Fatal(err)
	}
	p := &proxy{listener: listener}
	n.t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go p.serve(client, n.address())
		}
	}()
	return p
}

func (p *proxy) through(o *redis.Options) { o.Addr = p.listener.Addr().String() }

func (p *proxy) cut(word string, times int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.word, p.left = strings.ToUpper(word), times
}

func (p *proxy) cuts(request []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left == 0 || !bytes.Contains(bytes.ToUpper(request), []byte(p.word+"\r\n")) {
		return false
	}
	p.left--
	return true
}

func (p *proxy) serve(client net.Conn, address string) {
	defer client.Close()
	server, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer server.Close()
	dropping := make(chan struct{})
	go func() {
		defer client.Close()
		buffer := make([]byte, 1<<16)
		for {
			count, err := server.Read(buffer)
			if err != nil {
				return
			}
			select {
			case <-dropping: // the node has answered
				return
			default:
			}
			if _, err := client.Write(buffer[:count]); err != nil {
				return
			}
		}
	}()
	buffer := make([]byte, 1<<16)
	for dropped := false; ; {
		count, err := client.Read(buffer)
		if err != nil {
			return
		}
		if !dropped && p.cuts(buffer[:count]) {
			dropped = true
			close(dropping)
		}
		if _, err := server.Write(buffer[:count]); err != nil {
			return
		}
	}
}

func (n *node) stop() {
	_ = n.process.Process.Signal(syscall.SIGSTOP)
	until(n.t, "it stands still", func() bool {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", n.process.Process.Pid))
		return strings.Contains(string(text), ") T ")
	})
}

func (n *node) goOn() { _ = n.process.Process.Signal(syscall.SIGCONT) }
