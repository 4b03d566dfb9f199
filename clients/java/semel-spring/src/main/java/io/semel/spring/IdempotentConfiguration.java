package io.semel.spring;

import java.lang.reflect.Method;
import org.springframework.aop.config.AopConfigUtils;
import org.springframework.aop.support.DefaultBeanFactoryPointcutAdvisor;
import org.springframework.aop.support.StaticMethodMatcherPointcut;
import org.springframework.aop.support.AopUtils;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.beans.factory.config.BeanDefinition;
import org.springframework.beans.factory.support.BeanDefinitionRegistry;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.context.annotation.ImportBeanDefinitionRegistrar;
import org.springframework.context.annotation.Role;
import org.springframework.core.Ordered;
import org.springframework.core.env.Environment;
import org.springframework.core.type.AnnotationMetadata;

/** Proxies for beans with guarded methods. Needs a bean Semel; takes a bean Settings. */
@Configuration(proxyBeanMethods = false)
@Import(IdempotentConfiguration.Proxies.class)
@Role(BeanDefinition.ROLE_INFRASTRUCTURE)
public class IdempotentConfiguration {
  /** Outside of transactions, which have the lowest precedence: work is done after the commit. */
  private static final int ORDER = Ordered.LOWEST_PRECEDENCE - 100;

  static final class Proxies implements ImportBeanDefinitionRegistrar {
    @Override
    public void registerBeanDefinitions(AnnotationMetadata metadata,
        BeanDefinitionRegistry registry) {
      AopConfigUtils.registerAutoProxyCreatorIfNecessary(registry);
      // Controllers and services often have no interface, or methods that it does not name.
      AopConfigUtils.forceAutoProxyCreatorToUseClassProxying(registry);
    }
  }

  private static final class Matcher extends StaticMethodMatcherPointcut {
    private final Guards guards;

    Matcher(Guards guards) {
      this.guards = guards;
    }

    /** A wrong annotation ends the start of the application. */
    @Override
    public boolean matches(Method method, Class<?> target) {
      return guards.of(AopUtils.getMostSpecificMethod(method, target), target) != null;
    }
  }

  @Bean
  @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
  public static DefaultBeanFactoryPointcutAdvisor semelIdempotentAdvisor(BeanFactory beans,
      Environment environment) {
    Guards guards = new Guards(() -> settings(beans, environment));
    DefaultBeanFactoryPointcutAdvisor advisor = new DefaultBeanFactoryPointcutAdvisor();
    advisor.setPointcut(new Matcher(guards));
    advisor.setAdvice(new IdempotentInterceptor(guards, beans));
    advisor.setOrder(ORDER);
    return advisor;
  }

  private static Settings settings(BeanFactory beans, Environment environment) {
    Settings own = beans.getBeanProvider(Settings.class).getIfAvailable();
    if (own != null) return own;
    return new Settings().application(environment.getProperty("semel.application",
        environment.getProperty("spring.application.name", "")));
  }
}
