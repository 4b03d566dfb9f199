package io.semel.boot;

import com.fasterxml.jackson.databind.ObjectMapper;
import io.micrometer.core.instrument.MeterRegistry;
import io.semel.Codec;
import io.semel.Link;
import io.semel.Observer;
import io.semel.PlainCodec;
import io.semel.Semel;
import io.semel.json.Jackson3Codec;
import io.semel.json.JacksonCodec;
import io.semel.spring.IdempotentConfiguration;
import io.semel.spring.IssuedTokens;
import io.semel.spring.MicrometerObserver;
import io.semel.spring.Problems;
import io.semel.spring.Settings;
import io.semel.spring.mq.KafkaVerdicts;
import java.lang.management.ManagementFactory;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.AutoConfigureOrder;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.core.Ordered;
import org.springframework.core.annotation.Order;
import org.springframework.core.env.Environment;
import org.springframework.kafka.listener.DefaultErrorHandler;

/**
 * A Semel over the application's Redis client, and proxies for its guarded methods. After all others,
 * whose names differ between releases of Boot; nothing here is of javax or jakarta.
 */
@Configuration(proxyBeanMethods = false)
@ConditionalOnProperty(name = "semel.enabled", matchIfMissing = true)
@EnableConfigurationProperties(SemelProperties.class)
@AutoConfigureOrder(Ordered.LOWEST_PRECEDENCE)
@Import(IdempotentConfiguration.class)
public class SemelAutoConfiguration {
  @Bean
  @ConditionalOnMissingBean
  public Settings semelSettings(SemelProperties properties, Environment environment) {
    String name = properties.getApplication().isEmpty()
        ? environment.getProperty("spring.application.name", "") : properties.getApplication();
    return new Settings().application(name).tokenHeader(properties.getToken().getHeader())
        .tokenTtlMs(properties.getToken().getTtl().toMillis())
        .tokenKeepMs(properties.getToken().getKeep().toMillis())
        .anonymous(properties.getParam().isAnonymous());
  }

  @Bean(destroyMethod = "close")
  @ConditionalOnMissingBean
  public Link semelLink(BeanFactory beans) {
    return Links.of(beans);
  }

  @Bean
  @ConditionalOnMissingBean
  public Codec semelCodec(BeanFactory beans) {
    try {
      return Jackson2.of(beans);
    } catch (LinkageError none) {
      // Boot 4 has Jackson 3.
    }
    try {
      Class<?> mapper = Class.forName("tools.jackson.databind.json.JsonMapper");
      Object found = beans.getBeanProvider(mapper).getIfAvailable();
      return new Jackson3Codec(found == null ? mapper.getConstructor().newInstance() : found);
    } catch (ReflectiveOperationException | LinkageError none) {
      return new PlainCodec();
    }
  }

  /** Apart, so that this class loads without Jackson 2. */
  private static final class Jackson2 {
    static Codec of(BeanFactory beans) {
      ObjectMapper found = beans.getBeanProvider(ObjectMapper.class).getIfAvailable();
      return new JacksonCodec(
          found == null ? new ObjectMapper().findAndRegisterModules() : found);
    }
  }

  /** Closed with its link, which is a bean as well: both may be closed twice. */
  @Bean(destroyMethod = "close")
  @ConditionalOnMissingBean
  public Semel semel(Link link, SemelProperties properties, Codec codec, Settings settings,
      ObjectProvider<Observer> observers) {
    String owner = settings.application() + " " + ManagementFactory.getRuntimeMXBean().getName();
    Semel semel = new Semel(link, properties.options(owner), codec);
    observers.orderedStream().forEach(semel::observe);
    return semel;
  }

  @Bean
  @ConditionalOnMissingBean
  public IssuedTokens semelTokens(Semel semel, Settings settings) {
    return new IssuedTokens(semel, settings);
  }

  /** Metrics, where there is a registry. */
  @Configuration(proxyBeanMethods = false)
  @ConditionalOnClass(MeterRegistry.class)
  static class Metrics {
    @Bean
    @ConditionalOnBean(MeterRegistry.class)
    public MicrometerObserver semelMetrics(MeterRegistry registry) {
      return new MicrometerObserver(registry);
    }
  }

  /**
   * The error handler of Kafka's listeners, where the application has none of its own. Spring's would
   * give up what is to come again.
   */
  @Configuration(proxyBeanMethods = false)
  @ConditionalOnClass(name = "org.springframework.kafka.listener.DefaultErrorHandler")
  static class Kafka {
    @Bean
    @ConditionalOnMissingBean(type = {"org.springframework.kafka.listener.CommonErrorHandler",
        "org.springframework.kafka.listener.GenericErrorHandler"})
    public DefaultErrorHandler semelKafkaErrors() {
      return KafkaVerdicts.configure(new DefaultErrorHandler());
    }
  }

  /** Problem details and the endpoint for tokens, where there is Spring MVC. */
  @Configuration(proxyBeanMethods = false)
  @ConditionalOnClass(name = "org.springframework.web.servlet.DispatcherServlet")
  static class Web {
    @Bean
    @Order(Ordered.LOWEST_PRECEDENCE)
    @ConditionalOnMissingBean
    public Problems semelProblems() {
      return new Problems();
    }

    @Bean
    @ConditionalOnProperty("semel.token.endpoint")
    public TokenController semelTokenController(IssuedTokens tokens) {
      return new TokenController(tokens);
    }
  }
}
